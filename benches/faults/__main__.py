"""Injects faults while clients check every event that they receive; `benches/faults.sh` starts it."""

import argparse
import asyncio
import collections
import random
import signal
import sys
import time

from client import Client, Violation
from history import History
from stack import APIS, WORKERS, Stack

#: Every run must be at work again within this time after the last fault.
AT_WORK_S = 30
#: Time limit of a seed.
SEED_TIMEOUT_S = 180


class Faults:
    """The faults of one seed, one at a time or concurrently."""

    def __init__(self, stack, rng, history):
        self.stack, self.rng, self.history, self.counts = stack, rng, history, collections.Counter()

    async def inject(self, until):
        healing = set()
        while (now := time.monotonic()) < until:
            await asyncio.sleep(min(self.rng.uniform(0.5, 4), until - now))
            fault = self.rng.choice([
                self.kill_worker, self.kill_worker, self.stop_worker, self.stop_worker, self.kill_api, self.stop_api,
                self.kill_redis, self.empty_redis, self.stop_postgres, self.cut_clients, self.cut_clients,
                self.cut_database, self.cut_redis])
            self.counts[fault.__name__] += 1
            self.history.note(fault.__name__)
            healing.add(task := asyncio.ensure_future(fault()))
            task.add_done_callback(healing.discard)
        for task in list(healing):
            task.cancel()
        self.stack.heal()

    def alive(self, names):
        return [name for name in names if self.stack.processes[name].poll() is None]

    async def kill(self, names, longest):
        if alive := self.alive(names):
            self.stack.kill(name := self.rng.choice(alive))
            self.history.note(f"{name} is killed")
            await asyncio.sleep(self.rng.uniform(0, longest))
            if not self.alive([name]):
                self.history.note(f"{name} starts")
                self.stack.start(name)

    async def stop(self, names, pauses):
        if alive := self.alive(names):
            self.stack.send(name := self.rng.choice(alive), signal.SIGSTOP)
            self.history.note(f"{name} is stopped")
            await asyncio.sleep(self.rng.choice(pauses))
            if self.alive([name]):
                self.history.note(f"{name} continues")
                self.stack.send(name, signal.SIGCONT)

    async def kill_worker(self):
        await self.kill(WORKERS, 5)

    async def stop_worker(self):
        # Some pauses end after another worker has taken the runs over.
        await self.stop(WORKERS, [1, 6, self.stack.lease_ms / 1000 + 7])

    async def kill_api(self):
        await self.kill(APIS, 3)

    async def stop_api(self):
        await self.stop(APIS, [1, 4])

    async def kill_redis(self):
        await self.kill(["redis"], 5)

    async def empty_redis(self):
        if self.alive(["redis"]):
            _, to_redis = await asyncio.open_connection("127.0.0.1", self.stack.redis_port)
            to_redis.write(b"FLUSHALL\r\n")
            await to_redis.drain()
            to_redis.close()

    async def stop_postgres(self):
        if self.alive(["postgres"]):
            self.stack.kill("postgres", self.rng.choice([signal.SIGINT, signal.SIGQUIT]))
            await asyncio.sleep(self.rng.uniform(0, 6))
            if not self.alive(["postgres"]):
                self.history.note("postgres starts")
                self.stack.start("postgres")

    async def cut_clients(self):
        for name in APIS:
            self.stack.gates[name].cut(self.rng, self.rng.choice([0.3, 1]))

    async def cut_database(self):
        self.stack.gates["postgres"].cut(self.rng, self.rng.choice([0.3, 1]))

    async def cut_redis(self):
        self.stack.gates["redis"].cut(self.rng, self.rng.choice([0.3, 1]))


async def recover(history, since):
    """Returns the seconds since the last fault until every run has written an event, and until all have ended. Returns
    also the run that was the last to write, and the runs that have not ended."""
    stalled = at_work = slowest = None
    while time.monotonic() - since < SEED_TIMEOUT_S:
        states = await history.poll()
        if states is not None:
            stalled = states if stalled is None else {id: state for id, state in stalled.items() if states.get(id) == state}
            elapsed = time.monotonic() - since
            slowest = next(iter(stalled), slowest)
            if not stalled and at_work is None:
                at_work = elapsed
            if not states:
                return at_work, elapsed, slowest, []
        await asyncio.sleep(0.3)
    return at_work, None, slowest, list(states)


async def run_seed(stack, seed, args):
    """Runs one seed; returns a row of the table."""
    rng, totals, violations = random.Random(seed), collections.Counter(), collections.Counter()
    await stack.fresh()
    clients = []

    async def one(client):
        try:
            await asyncio.wait_for(client.follow_to_end(), args.seconds + SEED_TIMEOUT_S)
        except (Violation, asyncio.TimeoutError) as error:
            violations[str(error) or "a client waited too long"] += 1
            print(f"seed {seed}: run {client.run_id}: {error!r}", file=sys.stderr)

    history = History(stack)
    watching = asyncio.ensure_future(history.watch())
    faults, until = Faults(stack, rng, history), time.monotonic() + args.seconds
    faulting = asyncio.ensure_future(faults.inject(until))
    while time.monotonic() < until:
        clients.append(asyncio.ensure_future(one(Client(stack, random.Random(rng.getrandbits(64)), totals, violations))))
        await asyncio.sleep(rng.expovariate(args.rate))
    await faulting
    watching.cancel()
    healed = time.monotonic()
    history.note(f"all faults are repaired, at {time.strftime('%H:%M:%S', time.gmtime())} UTC")
    at_work, ended, slowest, unfinished = await recover(history, healed)
    if at_work is None or at_work > AT_WORK_S:
        violations["not every run was at work again in time"] += 1
        print(history.describe(slowest, healed), file=sys.stderr)
    if args.keep:
        history.write(stack.work / f"seed-{seed}.history", healed)
    if ended is None:
        violations[f"{len(unfinished)} runs have not ended"] += 1
    await asyncio.gather(*clients)
    check = {
        "lost: an acknowledged run is not in the database": totals["runs"] - int(stack.sql("select count(*) from kb.agent_runs")[0]),
        "doubled: a conversation has not two messages": int(stack.sql(
            "select count(*) from (select 1 from kb.chat_messages group by conversation_id having count(*) <> 2) odd")[0]),
    }
    violations.update({what: count for what, count in check.items() if count > 0})
    stack.stop_holdfast()
    print(f"seed {seed}: {dict(faults.counts)} {dict(violations)}", file=sys.stderr)
    seconds = lambda value: "–" if value is None else f"{value:.1f} s"
    return [seed, len(clients), totals["runs"], totals["ended"], totals["reconnects"], sum(faults.counts.values()),
            seconds(at_work), seconds(ended), sum(violations.values())]


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="folder of the executable")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=8, help="new clients a second")
    parser.add_argument("--lease-ms", type=int, default=15_000)
    parser.add_argument("--keep", help="folder in which the logs of all processes and the databases are kept")
    args = parser.parse_args()
    stack = Stack(args.bin, args.lease_ms, args.keep)
    violated = False
    try:
        await stack.open()
        print("| seed | clients | acknowledged | ended and compared | reconnects | faults | all at work after | all ended after | violations |")
        print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            row = await run_seed(stack, seed, args)
            print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)
            violated |= row[-1] > 0
    finally:
        stack.close()
    return violated


sys.exit(asyncio.run(main()))
