"""What PostgreSQL must be told and what it must not do: settings, the order of commits, a server that goes and comes, secrets."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from aforesaid.model import Text
from aforesaid_server.errors import FailedPrecondition, StartError, Unavailable
from aforesaid_server.store import AgentKey, Append, Change, Put
from aforesaid_server.store import postgres as module
from aforesaid_server.store.postgres import MORE_READERS, READERS, open_postgres
from aforesaid_server.store.sql import SqlStore
from aforesaid_server.store.writing import Transaction
from scripts.postgresql import OWNER, Cluster, NoPostgreSQL, cluster
from tests.conftest import missing
from tests.faults.serving import wait_until
from tests.store.plain import said

ADA = AgentKey("ada")
SECRET = "xyzzy-what-somebody-said"


@pytest.fixture
def opened(postgres: str) -> Iterator[SqlStore]:
    with closing(open_postgres(postgres)) as store:
        yield store


def append(store: SqlStore, text: str) -> int:
    """Appends a turn and returns its number."""
    return store.append(Append(ADA, "c", [said(text)]), now=1).turns[0].turn.number


def test_settings(postgres: str, postgres_cluster: Cluster) -> None:
    """Also where the database was told otherwise."""
    name = sql.Identifier(postgres.rpartition("/")[2])
    for statement in ("SET synchronous_commit = off", "SET jit = on", "SET default_transaction_read_only = on"):
        postgres_cluster.run(sql.SQL("ALTER DATABASE {} ").format(name) + sql.SQL(statement))
    with closing(open_postgres(postgres, patience=1.5)) as store:
        for engine, expected in ((store._reading, ("repeatable read", "on")), (store._writing, ("read committed", "off"))):
            with engine.begin() as connection:
                found = [
                    connection.exec_driver_sql(f"SHOW {name}").scalar()
                    for name in ("transaction_isolation", "transaction_read_only", "lock_timeout", "synchronous_commit", "jit")
                ]
                assert found == [*expected, "1500ms", "on", "off"]
                assert connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar() == "1min"


def test_a_reader_cannot_write(opened: SqlStore) -> None:
    with opened._reading.connect() as connection, pytest.raises(DBAPIError, match="ReadOnlySqlTransaction"):
        connection.exec_driver_sql("UPDATE log SET head = 7")


# -- the order of commits


def test_the_trap_of_numbers_in_order_of_arrival(postgres: str) -> None:
    """What PostgreSQL counts by itself: the slower transaction has the smaller number and commits later. Who follows misses it."""
    with (
        psycopg.connect(postgres, autocommit=True) as follower,
        psycopg.connect(postgres) as slow,
        psycopg.connect(postgres) as quick,
    ):
        follower.execute("CREATE TABLE counted (number bigserial PRIMARY KEY)")

        def after(number: int) -> list[int]:
            rows = follower.execute("SELECT number FROM counted WHERE number > %s ORDER BY number", [number])
            return [row[0] for row in rows]

        slow.execute("INSERT INTO counted DEFAULT VALUES")
        quick.execute("INSERT INTO counted DEFAULT VALUES")
        quick.commit()
        assert after(0) == [2]
        slow.commit()
        assert after(2) == []  # 1 is there, and will never be read
        assert after(0) == [1, 2]


def test_the_change_log_is_in_the_order_of_commits(postgres: str) -> None:
    """The same two writers: the quick one stands in line until the slow one has committed, so that nothing is passed over."""
    with (
        closing(open_postgres(postgres)) as slow,
        closing(open_postgres(postgres)) as quick,
        closing(open_postgres(postgres)) as follower,
        ThreadPoolExecutor(1) as thread,
    ):
        with slow._write() as connection:
            Transaction(connection, 1).append([Append(ADA, "c", [said("slow")])])
            waiting = thread.submit(append, quick, "quick")
            wait_until(lambda: in_line(follower) == 1)
            assert (follower.changes(0, 9), follower.head()) == ([], 0)
            assert not waiting.done()
        assert waiting.result() == 2
        assert [text_of(change) for change in follower.changes(0, 9)] == ["slow", "quick"]


def text_of(change: Change) -> str:
    """The text of the turn that a change puts."""
    assert isinstance(change, Put)
    assert change.place is not None
    (part,) = change.place.turn.parts
    assert isinstance(part, Text)
    return part.text


def in_line(store: SqlStore) -> int:
    """How many wait for the writers' lock."""
    with store._reading.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return int(found.scalar_one())


def test_a_follower_passes_nothing(postgres: str) -> None:
    """Writers of several processes at once, and a follower that reads all the time: each number once, in order."""
    each, writers = 12, 4
    seen: list[int] = []
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(open_postgres(postgres))) for _ in range(writers + 1)]

        def write(store: SqlStore) -> None:
            for number in range(each):
                append(store, f"{number}")

        with ThreadPoolExecutor(writers) as threads:
            writing = [threads.submit(write, store) for store in stores[1:]]
            while len(seen) < each * writers and not any(one.done() and one.exception() for one in writing):
                seen += [change.number for change in stores[0].changes(seen[-1] if seen else 0, 5)]
        assert [one.result() for one in writing] == [None] * writers
    assert seen == list(range(1, each * writers + 1))


def test_a_writer_that_hangs_is_put_out(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process that was stopped in the middle of a write; the others write on, and nothing of its write is there."""
    with ExitStack() as stack:
        other = stack.enter_context(closing(open_postgres(postgres)))
        monkeypatch.setattr(module, "_IDLE_SECONDS", 1)
        hanging = stack.enter_context(closing(open_postgres(postgres)))
        with pytest.raises(Unavailable):
            write_and_then(hanging, lambda: append(other, "one"))
        assert [text_of(change) for change in hanging.changes(0, 9)] == ["one"]


def write_and_then(store: SqlStore, before_it_ends: Callable[[], object]) -> None:
    """Appends a turn, and does something before that is committed."""
    with store._write() as connection:
        Transaction(connection, 1).append([Append(ADA, "c", [said("never")])])
        before_it_ends()


# -- a server that goes and comes back


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """One to be stopped."""
    try:
        with cluster() as one:
            yield one
    except NoPostgreSQL as error:
        missing(f"no PostgreSQL: {error}")


def test_a_server_that_was_restarted(own_cluster: Cluster) -> None:
    """Nobody notices: all connections are replaced before they are used."""
    with closing(open_postgres(own_cluster.url(own_cluster.new()))) as store:
        at_once = threading.Barrier(4)

        def read() -> int:
            with store._reading.connect():
                at_once.wait()  # four connections are open
            return store.head()

        with ThreadPoolExecutor(4) as threads:
            for number in range(3):
                assert append(store, "x") == number + 1
                assert list(threads.map(lambda _: read(), range(4))) == [number + 1] * 4
                (own_cluster.stop, own_cluster.kill)[number % 2]()
                own_cluster.start()


def test_a_server_that_is_gone(own_cluster: Cluster) -> None:
    with closing(open_postgres(own_cluster.url(own_cluster.new()))) as store:
        append(store, "one")
        with pytest.raises(Unavailable):
            write_and_then(store, own_cluster.kill)
        for attempt in (store.head, lambda: append(store, SECRET), lambda: store.changes(0, 1)):
            with pytest.raises(Unavailable) as raised:
                attempt()
            assert raised.value.message == "the store cannot answer now"
            told = "".join(traceback.format_exception(raised.value))
            assert SECRET not in told
            assert own_cluster.password not in told
        own_cluster.start()
        assert (store.head(), append(store, "two")) == (1, 2)


def test_no_connection_free(postgres: str) -> None:
    with closing(open_postgres(postgres, patience=0.05)) as store:
        with ExitStack() as stack:
            for _ in range(READERS + MORE_READERS):
                stack.enter_context(store._reading.connect())
            with pytest.raises(Unavailable, match=r"^the store has no connection free$"):
                store.head()
        assert store.head() == 0


def test_a_server_with_no_connection_to_give(own_cluster: Cluster) -> None:
    name = own_cluster.new()
    limit = sql.SQL("ALTER DATABASE {} CONNECTION LIMIT 2").format(sql.Identifier(name))
    own_cluster.run(limit)
    with closing(open_postgres(own_cluster.url(name))) as store:
        with store._reading.connect(), pytest.raises(Unavailable, match=r"^the store cannot answer now$"):
            store.head()
        assert store.head() == 0


# -- what is told


def test_errors_do_not_tell_what_was_said(opened: SqlStore) -> None:
    """PostgreSQL shows the row that broke a rule, and the value that it could not read."""
    with pytest.raises(IntegrityError, match="NotNullViolation: null value in column") as broken, opened._write() as connection:
        connection.exec_driver_sql("INSERT INTO reads VALUES (1, %(body)s, NULL)", {"body": SECRET})
    with pytest.raises(DataError, match="InvalidTextRepresentation: a value") as unread, opened._write() as connection:
        connection.exec_driver_sql("SELECT %(text)s::text::bigint", {"text": SECRET})
    for raised in (broken, unread):
        assert SECRET not in "".join(traceback.format_exception(raised.value))
    assert opened.head() == 0


PASSWORD = "hunter2-7Gq"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("store.db", "store: is no address such as postgresql://user:password@host/database"),
        (f"u:{PASSWORD}@h/d", "store: is no address such as"),
        (f"mysql://u:{PASSWORD}@h/d", "store: mysql:// is not supported: postgresql:// is"),
        (f"postgresql+psycopg2://u:{PASSWORD}@h/d", "store: another scheme is not supported"),
        (f"{PASSWORD}.://h/d", "store: another scheme is not supported"),
        (f"postgresql://u:{PASSWORD}@h", "store: the address names no database"),
        ("postgresql://", "store: the address names no database"),
        (f"postgresql://u:{PASSWORD}@h:port/d", "store: the address cannot be read"),
        (f"postgresql://u:x/{PASSWORD}:@h:{PASSWORD}/d", "store: the address cannot be read"),
        (f"postgresql://u:x@{PASSWORD}@h/d", "store: an @ in a user's name or password is written %40"),
        (f"postgresql://u:{PASSWORD}@h:70000/d", "store: the port is none: 1 to 65535 are"),
    ],
)
def test_what_is_no_address_is_refused_without_being_told(url: str, told: str) -> None:
    with pytest.raises(StartError) as raised:
        open_postgres(url)
    assert str(raised.value).startswith(told)
    assert PASSWORD not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("/d", "/nothing"), 'database "nothing.*" does not exist'),
        ((f"{OWNER}:", "nobody:"), 'password authentication failed for user "nobody"'),
        (("{password}", PASSWORD), f'password authentication failed for user "{OWNER}"'),
        (("?", f"?password={PASSWORD}&"), f'password authentication failed for user "{OWNER}"'),
        (("?", "?foo=1&"), 'invalid connection option "foo"'),
        (("?", f"?sslmode={PASSWORD}&password={PASSWORD}&"), r'invalid sslmode value: "\*\*\*"'),
        (("?", "?sslmode=require&"), "server does not support SSL"),
        (("127.0.0.1:{port}", "127.0.0.1:1"), "Connection refused"),
        (("127.0.0.1:{port}", "nowhere.invalid"), "resolve"),
    ],
)
def test_a_database_that_cannot_be_opened(postgres_cluster: Cluster, change: tuple[str, str], told: str) -> None:
    before, after = (part.format(password=postgres_cluster.password, port=postgres_cluster.port) for part in change)
    url = f"{postgres_cluster.url('d0')}?connect_timeout=5".replace(before, after)
    with pytest.raises(Unavailable, match=rf"^the store in the database \w+ at \S+ cannot be opened: .*{told}") as raised:
        open_postgres(url)
    written = "".join(traceback.format_exception(raised.value))
    assert PASSWORD not in written
    assert postgres_cluster.password not in written


def test_by_a_unix_socket(postgres: str, postgres_cluster: Cluster) -> None:
    name = postgres.rpartition("/")[2]
    with closing(open_postgres(postgres_cluster.socket_url(name))) as store:
        assert append(store, "x") == 1
    with closing(open_postgres(postgres.replace("postgresql://", "postgres://"), create=False)) as store:
        assert store.head() == 1


def test_the_one_that_answers_of_several_servers(postgres: str, postgres_cluster: Cluster) -> None:
    name, password, port = postgres.rpartition("/")[2], postgres_cluster.password, postgres_cluster.port
    hosts = f"host=127.0.0.1:1&host=127.0.0.1:{port}&target_session_attrs=read-write"
    with closing(open_postgres(f"postgresql://{OWNER}:{password}@/{name}?{hosts}")) as store:
        assert store.head() == 0


def test_a_database_that_can_hold_no_store(own_cluster: Cluster) -> None:
    own_cluster.run(
        sql.SQL("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' OWNER {}").format(
            sql.Identifier(OWNER)
        )
    )
    with pytest.raises(FailedPrecondition, match=r"^the database latin at .* has the encoding LATIN1: make one with"):
        open_postgres(own_cluster.url("latin"))
    own_cluster.run(sql.SQL("CREATE DATABASE locked TEMPLATE template0"))
    own_cluster.run(sql.SQL("REVOKE ALL ON SCHEMA public FROM PUBLIC"), "locked")
    with pytest.raises(Unavailable, match=r"cannot be opened: .*(permission denied|no schema)"):
        open_postgres(own_cluster.url("locked"))


def test_a_user_that_may_only_read(own_cluster: Cluster) -> None:
    name = own_cluster.new()
    with closing(open_postgres(own_cluster.url(name))) as store:
        append(store, "x")
    own_cluster.run(sql.SQL("CREATE ROLE reader LOGIN PASSWORD 'pw'"))
    own_cluster.run(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"), name)
    with pytest.raises(FailedPrecondition, match=rf"^the user of the address may not write in the database {name} at"):
        open_postgres(f"postgresql://reader:pw@127.0.0.1:{own_cluster.port}/{name}")


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StartError, match=r"needs what the extra \[postgresql\] installs: pip install 'aforesaid\[postgresql\]'"):
        open_postgres("postgresql://u:p@h/d")
