"""A PostgreSQL cluster that is thrown away: made in a folder of its own, served on a free port of 127.0.0.1, stopped and removed.

Used by the tests and by bench/. The programs are those of Debian's package `postgresql`, or whatever is on the path. PostgreSQL
refuses to run as root: there the cluster runs as the user `postgres`, or as `nobody`. It ends with the process that started it,
also where that one is killed. Nothing waits for the disk: a cluster that a power cut may destroy.
"""

from __future__ import annotations

import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

OWNER = "aforesaid"
"""The role that owns the databases: no superuser, as a deployment's should not be."""
OF_DEBIAN = Path("/usr/lib/postgresql")
POLL_SECONDS = 0.02
START_SECONDS = 60
LOG_TAIL_BYTES = 4_000

# Starts the server and asks it to stop once nobody holds the other end of standard input, however its holder ended.
_UNTIL_LEFT = """
exec 3<&0
"$@" </dev/null &
server=$!
(while read -r _; do :; done; kill -INT "$server" 2>/dev/null) <&3 3<&- >/dev/null 2>&1 &
exec 3<&-
wait "$server"
"""


class NoPostgreSQL(Exception):
    """A cluster cannot be had on this machine; says why."""


def programs() -> Path:
    """Returns the folder with initdb and postgres, of the newest version that is installed. Raises NoPostgreSQL."""
    of_debian = sorted(OF_DEBIAN.glob("[0-9]*/bin"), key=lambda folder: int(folder.parent.name), reverse=True)
    on_path = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    for folder in [*of_debian, *on_path]:
        if all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres")):
            return folder
    raise NoPostgreSQL("neither initdb nor postgres is here: on Debian they are in the package `postgresql`")


@dataclass
class Cluster:
    """A cluster that serves. `url` and `socket_url` are addresses of a database for its owner, the second without TCP."""

    folder: Path
    port: int
    password: str
    programs: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    _count: Iterator[int] = field(default_factory=itertools.count)

    def url(self, database: str) -> str:
        """Returns the address of a database, with the password in it."""
        return f"postgresql://{OWNER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: str) -> str:
        """Returns its address on the unix socket, which asks for no password."""
        return f"postgresql:///{database}?host={self.folder}&port={self.port}&user={OWNER}"

    def new(self, template: str = "template0", *, ordered_by: str = "") -> str:
        """Makes a database for the owner, as a copy of another one, and returns its name. `ordered_by` is an ICU locale."""
        name = f"d{next(self._count)}"
        options = [sql.SQL("TEMPLATE {} OWNER {}").format(sql.Identifier(template), sql.Identifier(OWNER))]
        if ordered_by:
            options.append(sql.SQL("LOCALE_PROVIDER icu ICU_LOCALE {}").format(sql.Literal(ordered_by)))
        self.run(sql.SQL("CREATE DATABASE {} {}").format(sql.Identifier(name), sql.SQL(" ").join(options)))
        return name

    def drop(self, name: str) -> None:
        """Removes a database, whoever is still connected to it."""
        self.run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def run(self, statement: sql.SQL | sql.Composed, database: str = "postgres") -> list[tuple[object, ...]]:
        """Runs a statement as the superuser; returns its rows."""
        with psycopg.connect(f"{self._as_superuser()} dbname={database}", autocommit=True) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def _as_superuser(self) -> str:
        return f"host={self.folder} port={self.port} user=postgres"

    # -- its life

    def start(self) -> None:
        """Starts the server and returns once it takes connections. Raises NoPostgreSQL."""
        command = [str(self.programs / "postgres"), "-F", "-D", str(self.folder / "data"), "-k", str(self.folder)]
        command += ["-p", str(self.port), *(f"-c{name}={value}" for name, value in self.settings.items())]
        with (self.folder / "log").open("ab") as log:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                ["/bin/sh", "-c", _UNTIL_LEFT, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,  # Ctrl-C is for those who use it
                **_other_user(),
            )
        self.process = process
        for _ in range(round(START_SECONDS / POLL_SECONDS)):
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)
                raise NoPostgreSQL(f"postgres did not start: {self.told()}")
            if self._says_ready():
                return
        self.stop()
        raise NoPostgreSQL(f"postgres was not ready after {START_SECONDS} s: {self.told()}")

    def _says_ready(self) -> bool:
        """Tells whether the file of its process says so, as pg_ctl asks."""
        with suppress(FileNotFoundError):
            lines = (self.folder / "data" / "postmaster.pid").read_text("utf-8").splitlines()
            return len(lines) > 7 and lines[7].strip() == "ready"
        return False

    def stop(self) -> None:
        """Ends it; calls under way fail."""
        if self.process is None:
            return
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None

    def kill(self) -> None:
        """Ends it as a crash would; the next start recovers."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text("utf-8").splitlines()[0])
        os.kill(pid, signal.SIGQUIT)
        self.stop()

    def told(self) -> str:
        """Returns the end of its log."""
        return (self.folder / "log").read_bytes()[-LOG_TAIL_BYTES:].decode("utf-8", "replace")


@contextmanager
def cluster(settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Makes a cluster, serves it and removes it in the end. `settings` go over those of the server. Raises NoPostgreSQL."""
    found = programs()
    folder = _reachable_folder()
    try:
        password = secrets.token_hex(16)
        _make(found, folder)
        one = Cluster(folder, _free_port(), password, found, dict(settings or {}))
        one.start()
        try:
            role = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(OWNER), sql.Literal(password))
            one.run(role)
            yield one
        finally:
            one.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make(found: Path, folder: Path) -> None:
    """Makes the files: who comes by the socket, in a folder of its user's alone, is trusted, who comes by TCP needs a password."""
    command = [
        str(found / "initdb"),
        "-D",
        str(folder / "data"),
        "-U",
        "postgres",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
    ]
    command += ["--auth-local=trust", "--auth-host=scram-sha-256"]
    with (folder / "password").open("w") as file:  # asked for by initdb; nobody ever uses it
        file.write(secrets.token_hex(16))
    (folder / "password").chmod(0o644)
    command += ["--pwfile", str(folder / "password")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/", check=False, **_other_user())
    if done.returncode:
        raise NoPostgreSQL(f"initdb failed: {done.stderr.strip()}")


def _other_user() -> dict[str, Any]:
    """Returns how a process is started as another user, where this one is root."""
    if os.geteuid() != 0:
        return {}
    user = _user()
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgreSQL("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")


def _reachable_folder() -> Path:
    """Returns a new folder of the server's user, which that one can reach. A socket's path must be short, so it is a short one."""
    for base in dict.fromkeys([Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]):  # noqa: S108 - a folder of its own in it
        reachable = os.geteuid() != 0 or all(step.stat().st_mode & 0o001 for step in [base, *base.parents])
        if reachable and len(os.fsencode(base)) < 60:
            folder = Path(tempfile.mkdtemp(prefix="aforesaid-pg-", dir=base))
            if os.geteuid() == 0:
                os.chown(folder, _user().pw_uid, _user().pw_gid)
            return folder
    raise NoPostgreSQL("no folder for temporary files can be reached by another user")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def main() -> int:
    """Serves a cluster with one empty database until Ctrl-C or SIGTERM, and prints its address."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt), cluster() as one:
            print(one.url(one.new()), flush=True)
            signal.pause()
    except NoPostgreSQL as error:
        print(f"postgresql: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
