"""What tests of every kind share: the reference data, and servers of this checkout that run as processes of their own.

Tests in process make what they need themselves. Whatever is missing on a machine skips with a reason, and fails where CI is set, so
that nothing is left out there without a word.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn, Protocol, TypeAlias

import pytest
from hypothesis import settings

from aforesaid._config import config_file
from aforesaid_server.store.postgres import open_postgres
from scripts.fetch_validate_proto import TARGET as VALIDATE_PROTO
from scripts.postgresql import Cluster, NoPostgreSQL, cluster
from scripts.running_server import EXAMPLES, ROOT, RunningServer, start

# gRPC's own clean-up after a fork gets in the way of programs that are started as another user, which Python forks for.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# Two shared cores: a slow example says nothing about the code. Failures are printed so that they can be run again elsewhere.
settings.register_profile("aforesaid", deadline=None, print_blob=True)
settings.load_profile("aforesaid")


def missing(what: str) -> NoReturn:
    """Skips the test with the reason; fails it where CI is set."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Puts the client's file of settings out of sight, if whoever runs the tests has one; other programs have theirs beside it."""
    path = config_file(os.environ)
    if path is not None and path.exists():
        os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data: $AFORESAID_SHARED, or ../shared beside the repository. Read only."""
    folder = Path(os.environ.get("AFORESAID_SHARED") or ROOT.parent / "shared")
    if not (folder / "data").is_dir():
        missing(f"no reference data at {folder}")
    return folder


@pytest.fixture(scope="session")
def proto_roots() -> tuple[Path, ...]:
    """The folders in which a protoc finds agent/v1 and what it imports."""
    if not VALIDATE_PROTO.is_file():
        missing("no buf/validate/validate.proto in .proto-deps: `make proto` fetches it")
    return ROOT / "proto", VALIDATE_PROTO.parents[2]


@pytest.fixture(scope="session")
def scripts_path() -> str:
    """A PATH on which this environment's own commands, such as `aforesaid`, come first."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """A PostgreSQL of the whole run. Whoever stops or restarts one makes one of its own, with `scripts.postgresql.cluster`."""
    try:
        with cluster() as one:
            yield one
    except NoPostgreSQL as error:
        missing(f"no PostgreSQL: {error}")


NewDatabase: TypeAlias = Callable[[], str]


@pytest.fixture(scope="session")
def new_database(postgres_cluster: Cluster) -> NewDatabase:
    """Makes databases that hold the tables of a store and nothing in them; returns the address of each.

    They sort as English does, as a deployment's may: what the store sorts must not depend on that.
    """
    name = postgres_cluster.new(ordered_by="en-US")
    open_postgres(postgres_cluster.url(name)).close()
    return lambda: postgres_cluster.url(postgres_cluster.new(name))


@pytest.fixture
def postgres(postgres_cluster: Cluster, new_database: NewDatabase) -> Iterator[str]:
    """The address of a database of a test's own, with the tables of a store and nothing in them."""
    url = new_database()
    yield url
    postgres_cluster.drop(url.rpartition("/")[2])


class StartServer(Protocol):
    """Starts a server on free ports; without `data` in an empty folder. `settings` are environment variables (`AFORESAID_*`)."""

    def __call__(
        self, *, data: Path | None = None, imports: Sequence[Path] = (), settings: Mapping[str, str] | None = None
    ) -> RunningServer: ...


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for the whole run, its store empty at first; tests keep apart by making agents of their own."""
    folder = tmp_path_factory.mktemp("server")
    running = start(folder / "data", log=folder / "server.log")
    yield running
    end(running)


@pytest.fixture(scope="session")
def example_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that holds examples/ and nothing else; read only."""
    folder = tmp_path_factory.mktemp("examples")
    running = start(folder / "data", imports=[EXAMPLES], log=folder / "server.log")
    yield running
    end(running)


@pytest.fixture(scope="session")
def service_url(server: RunningServer) -> str:
    """The Connect door of the session's server."""
    return server.url


@pytest.fixture(scope="session")
def grpc_target(server: RunningServer) -> str:
    """The gRPC door of the session's server, host:port."""
    return server.grpc


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Starts servers of a test's own. At its end each must drain and end with 0, but for one that the test has killed."""
    with ExitStack() as stack:
        count = itertools.count()

        def begin(
            *, data: Path | None = None, imports: Sequence[Path] = (), settings: Mapping[str, str] | None = None
        ) -> RunningServer:
            number = next(count)
            running = start(
                data or tmp_path / f"data-{number}", imports=imports, settings=settings, log=tmp_path / f"server-{number}.log"
            )
            stack.callback(end, running)
            return running

        yield begin


def end(running: RunningServer) -> None:
    """Stops a server; it must have drained and ended with 0, unless the test has killed it."""
    before = running.process.poll()
    code = running.stop()
    assert code == 0 or before == -signal.SIGKILL, f"the server ended with exit code {code}\n{running.told()}"
