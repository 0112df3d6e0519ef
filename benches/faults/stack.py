"""A private PostgreSQL and Redis, two APIs and two workers, and the gates between them."""

import asyncio
import ctypes
import glob
import os
import pathlib
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

WORKERS = ["worker-1", "worker-2"]
APIS = ["api-1", "api-2"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Gate:
    """Forwards connections to a port, and resets them on demand."""

    def __init__(self, target):
        self.port, self.target, self.open = free_port(), target, set()

    async def listen(self):
        self.server = await asyncio.start_server(self.carry, "127.0.0.1", self.port)

    async def carry(self, client, to_client):
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return to_client.transport.abort()
        ends = (to_client, to_server)
        self.open.add(ends)
        try:
            pumps = [asyncio.ensure_future(pump(client, to_server)), asyncio.ensure_future(pump(server, to_client))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # The program ends.
            pass
        finally:
            self.open.discard(ends)
            for task in pumps:
                task.cancel()
            for end in ends:
                end.close()

    def cut(self, rng, share):
        """Resets this share of the connections."""
        for ends in list(self.open):
            if rng.random() < share:
                for end in ends:
                    if (peer := end.get_extra_info("socket")) is not None and peer.fileno() >= 0:
                        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.transport.abort()


async def pump(source, sink):
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass


class Stack:
    def __init__(self, bin_dir, lease_ms, keep=None):
        self.bin, self.lease_ms, self.keep = pathlib.Path(bin_dir).resolve(), lease_ms, keep
        if keep:
            pathlib.Path(keep).mkdir(parents=True, exist_ok=True)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="faults-", dir=keep))
        self.work.chmod(0o755)
        self.pg_bin = pathlib.Path(sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1])
        self.pg_port, self.redis_port = free_port(), free_port()
        self.processes, self.ports = {}, {name: free_port() for name in APIS}
        self.databases = 0

    def spawn(self, name, command, env=None, user=None):
        log = open(self.work / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env, user=user, cwd="/",
            preexec_fn=die_with_parent)

    async def open(self):
        data = self.work / "pg"
        data.mkdir()
        # PostgreSQL refuses root.
        self.pg_user = "postgres" if os.geteuid() == 0 else None
        if self.pg_user:
            os.chown(data, pwd.getpwnam("postgres").pw_uid, -1)
        initdb = [self.pg_bin / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, user=self.pg_user, cwd="/")
        self.start("postgres")
        self.start("redis")
        self.gates = {"postgres": Gate(self.pg_port), "redis": Gate(self.redis_port)}
        self.gates |= {name: Gate(self.ports[name]) for name in APIS}
        for gate in self.gates.values():
            await gate.listen()

    async def fresh(self):
        """Creates a new database and starts all processes."""
        self.databases += 1
        database = f"seed_{self.databases}"
        while self.sql(f"create database {database}", "postgres") is None:
            await asyncio.sleep(0.1)
        self.database = database
        # In a thread, because the event loop of this thread carries the gates.
        await asyncio.to_thread(subprocess.run, [self.bin / "holdfast", "migrate"], env=self.env(), check=True)
        for name in APIS + WORKERS:
            self.start(name)
        for name in APIS:
            while not await self.listens(name):
                await asyncio.sleep(0.1)

    async def listens(self, name):
        try:
            (await asyncio.open_connection("127.0.0.1", self.ports[name]))[1].close()
            return True
        except OSError:
            return False

    def env(self, name=None):
        database = f"postgres://postgres@127.0.0.1:{self.gates['postgres'].port}/{self.database}"
        env = {"PATH": os.environ["PATH"], "DATABASE_URL": database, "HOLDFAST_LOG": "info" if self.keep else "warn"}
        env |= {"REDIS_URL": f"redis://127.0.0.1:{self.gates['redis'].port}", "HOLDFAST_LEASE_MS": str(self.lease_ms)}
        if name in APIS:
            env["HOLDFAST_ADDR"] = f"127.0.0.1:{self.ports[name]}"
        return env

    def start(self, name):
        if name == "postgres":
            command = [self.pg_bin / "postgres", "-D", self.work / "pg", "-p", str(self.pg_port)]
            for setting in ["listen_addresses=127.0.0.1", f"unix_socket_directories={self.work / 'pg'}",
                            "max_connections=200", "fsync=off"]:
                command += ["-c", setting]
            self.spawn(name, command, user=self.pg_user)
        elif name == "redis":
            self.spawn(name, ["redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", "",
                              "--appendonly", "no", "--dir", self.work])
        else:
            self.spawn(name, [self.bin / "holdfast", name.split("-")[0]], env=self.env(name))

    def send(self, name, number):
        self.processes[name].send_signal(number)

    def kill(self, name, number=signal.SIGKILL):
        # A PostgreSQL that has just been started may miss the signal.
        while self.processes[name].poll() is None:
            self.processes[name].send_signal(number)
            try:
                self.processes[name].wait(1)
            except subprocess.TimeoutExpired:
                pass

    def heal(self):
        """Continues every stopped process and starts every process that has ended."""
        for name in ["postgres", "redis"] + APIS + WORKERS:
            if self.processes[name].poll() is None:
                self.send(name, signal.SIGCONT)
            else:
                self.start(name)

    def sql(self, text, database=None):
        """Returns the lines of the result, or None on failure. The connection bypasses the gate."""
        url = f"postgres://postgres@127.0.0.1:{self.pg_port}/{database or self.database}"
        result = subprocess.run([self.pg_bin / "psql", "-qtA", "-v", "ON_ERROR_STOP=1", "-c", text, url],
                               capture_output=True, text=True)
        return result.stdout.splitlines() if result.returncode == 0 else None

    def stop_holdfast(self):
        for name in APIS + WORKERS:
            self.send(name, signal.SIGCONT)
            self.kill(name)

    def close(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGQUIT)
        until = time.monotonic() + 5
        for process in self.processes.values():
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
        if not self.keep:
            shutil.rmtree(self.work, ignore_errors=True)
