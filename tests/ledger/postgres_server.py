"""A PostgreSQL server of our own, in a folder that goes with it: what the tests of that store run on."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest


def binaries():
    """Where initdb and pg_ctl are; Debian keeps them out of the path."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "pg_basebackup").exists()), None)


def why_not():
    """Why there can be no server here; None where there can."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed"
    if binaries() is None:
        return "no PostgreSQL server is installed (Debian: apt-get install postgresql)"
    if os.geteuid() == 0 and user() is None:
        return "root may not run PostgreSQL, and there is no other user to run it"
    return None


def user():
    """Whom root runs the server as; None where we are not root, or nobody is there."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


class Server:
    """A running server, reached by a socket in its own folder."""

    def __init__(self, folder):
        self.folder, self.data = folder, folder / "data"
        self.owner = user()

    def command(self, program, *arguments):
        place = binaries()
        with (self.folder / "commands.log").open("ab") as log:  # no pipe: the server would keep it open
            subprocess.run(
                [str(place / program), *arguments],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.owner,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"},
            )

    def make(self, *, checksums=True):
        more = ["--data-checksums"] if checksums else []
        self.command("initdb", "-D", str(self.data), "-U", "quorate", "-A", "trust", "-E", "UTF8", "--no-sync", *more)

    def start(self, *, fsync=True, more=""):
        options = f"-c listen_addresses='' -k {self.folder} -c max_connections=100 -c shared_buffers=16MB"
        options += f"{'' if fsync else ' -c fsync=off'} {more}"
        log = str(self.folder / "server.log")
        self.command("pg_ctl", "-D", str(self.data), "-l", log, "-w", "-t", "60", "-o", options, "start")

    def stop(self, how="fast"):
        self.command("pg_ctl", "-D", str(self.data), "-w", "-m", how, "stop")

    def kill(self):
        """End it as a power cut does, at once."""
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def restart(self):
        """Start it after a kill, once its processes are gone."""
        end = time.monotonic() + 30
        while True:
            try:
                return self.start()
            except subprocess.CalledProcessError:
                assert time.monotonic() < end
                time.sleep(0.1)

    def promote(self):
        self.command("pg_ctl", "-D", str(self.data), "-w", "promote")

    def copy(self, primary):
        """Become a standby of another server, by a copy of it; what was here is gone."""
        shutil.rmtree(self.data, ignore_errors=True)
        source = ["-h", str(primary.folder), "-U", "quorate", "-c", "fast", "--no-sync"]
        self.command("pg_basebackup", "-D", str(self.data), "-R", "-X", "stream", *source)
        self.start()

    def setting(self, name, value):
        self.sql(f"ALTER SYSTEM SET {name} = '{value}'", "SELECT pg_reload_conf()")

    def url(self, ledger=None, **more):
        parameters = {"host": str(self.folder), "user": "quorate", "ledger": ledger or uuid.uuid4().hex, **more}
        return "postgresql:///postgres?" + "&".join(f"{name}={value}" for name, value in parameters.items())

    def sql(self, *statements):
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def rows(self, query, *arguments):
        with self.connect() as connection:
            return connection.execute(query, arguments).fetchall()

    def insert(self, table, rows):
        with self.connect() as connection:
            for row in rows:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)

    def until(self, query, seconds=30):
        end = time.monotonic() + seconds
        while not self.rows(query)[0][0]:
            assert time.monotonic() < end, query
            time.sleep(0.02)

    def connect(self):
        import psycopg

        return psycopg.connect(host=str(self.folder), user="quorate", dbname="postgres", autocommit=True)


@contextmanager
def waiting(server):
    """Have its commits wait for a standby that is not there."""
    server.setting("synchronous_standby_names", "nobody")
    try:
        server.until("SELECT current_setting('synchronous_standby_names') = 'nobody'")
        yield
    finally:
        server.setting("synchronous_standby_names", "")


@contextmanager
def running(*, started=True):
    """A server that runs until the block ends; where it is not started, the place for one."""
    folder = Path(tempfile.mkdtemp(prefix="quorate-pg-", dir="/tmp"))
    server = Server(folder)
    try:
        if server.owner is not None:
            shutil.chown(folder, server.owner)
        folder.chmod(0o755)
        if started:
            server.make()
            server.start()
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            with suppress(subprocess.CalledProcessError):  # one that was killed is gone
                server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server():
    """A server for all tests; those that ask for it are skipped where there can be none."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    with running() as server:
        yield server
