"""An attack that lasts, beside bystanders: what the attackers got, what the server held, and how long the bystanders waited."""
import threading, time

from .bystander import FORK, Bystanders, one_word
from .server import Server


class Attack:
    """The base of attacks. `prepare` may take its time; `strike` lasts until a moment of the monotonic clock."""

    # Variables of the server's environment.
    settings = {}
    # The acts of the bystanders.
    acts = (one_word,)

    def prepare(self, server):
        pass

    def strike(self, server, until):
        """Attacks, and returns what the attackers got, in words."""
        raise NotImplementedError


def measure(program, attack, seconds=30, count=1):
    """Returns the row of an attack: what it got, the bystanders' times without and beside it, and the server's memory."""
    server = Server(program, **attack.settings)
    try:
        attack.prepare(server)
        without = Bystanders(server, min(10, seconds), count, attack.acts, "quiet").end()
        time.sleep(1)
        server.before = server.peak = server.memory()
        results = FORK.Queue()
        # Order matters: a fork copies no thread, so the attackers begin before this process has further ones.
        striker = FORK.Process(target=lambda: results.put(words_of(attack, server, time.monotonic() + seconds)))
        striker.start()
        beside = Bystanders(server, seconds, count, attack.acts).end()
        got = results.get()
        striker.join()
        return got, str(without), str(beside), server.end()
    except BaseException:
        server.end()
        raise


def words_of(attack, server, until):
    try:
        return attack.strike(server, until)
    except Exception as error:  # The row says so, and the other attacks follow.
        return f"the attack itself failed: {type(error).__name__} {error}"


def again(until, work):
    """Repeats `work` until the moment; returns its results."""
    results = []
    while time.monotonic() < until:
        try:
            results.append(work())
        except OSError as error:
            results.append(("disconnected", type(error).__name__, b""))
    return results


def side_by_side(count, until, work):
    """Repeats `work(i)` in `count` threads until the moment; returns all results."""
    results = []
    workers = [threading.Thread(target=lambda i=i: results.extend(again(until, lambda: work(i)))) for i in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results
