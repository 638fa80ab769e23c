"""Opens a PostgreSQL database: the engines, with everything about PostgreSQL that the statements need not know.

Two engines on one database, as for SQLite: readers, whose every transaction is one snapshot that cannot write, and one connection
for writing. A transaction begins when a connection is taken from its pool, by the driver's plain `BEGIN`: where that fails, the
server was away since, all connections kept are given up, and a new one is taken before anybody notices.

Writers of all processes stand in line at one advisory lock, which a transaction holds until its commit is seen by everybody. So the
numbers of the change log are in the order of the commits, and who has read a number has missed none before it. What else the
database does in its order of arrival (a sequence, `xid`) does not promise that.

An address is a secret: it may hold a password. No message here holds more of it than host and database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, unquote

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.engine.interfaces import ExceptionContext
from sqlalchemy.exc import ArgumentError, DBAPIError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from aforesaid_server.errors import FailedPrecondition, StartError, Unavailable
from aforesaid_server.store.migrations import made
from aforesaid_server.store.sql import PATIENCE, SqlStore

if TYPE_CHECKING:  # the extra [postgresql] may be missing
    from psycopg import Connection as _Connection

    DriverConnection: TypeAlias = _Connection[Any]

SCHEMES = ("postgresql", "postgres")
READERS = 8  # connections kept; the others are opened when all are busy and closed afterwards
MORE_READERS = 16
OLDEST = 14
"""The oldest version that is served."""
_NEW = "new"
_WRITERS = 0x61666F7265736169  # the key of the lock at which they stand, "aforesai": one in each database
_IDLE_SECONDS = 60  # after which the server ends a transaction of a process that hangs, and lets the next one write
_MAY_WRITE = "SELECT has_table_privilege('turns', 'INSERT') AND has_table_privilege('log', 'UPDATE')"
_SILENT_SECONDS = 30  # after which a connection is given up whose other end does not even confirm what it was sent


def open_postgres(url: str, *, create: bool = True, patience: float = PATIENCE) -> SqlStore:
    """Opens the store in the database at an address (`postgresql://user:password@host/database`, see `address_of`) and brings its
    tables to the newest revision.

    `patience` is how many seconds a call waits for a connection or for others' locks. Raises StartError for an address that is
    none and where the driver is not installed, FailedPrecondition if the database holds no store and `create` is false, if it
    cannot hold one, and if a newer version wrote it, and Unavailable if it cannot be reached.
    """
    address = address_of(url)
    place = place_of(address)
    reading, writing = reading_engine(address, patience), _writing_engine(address, patience)
    store = SqlStore(reading, writing, shared=True)
    try:
        with reading.connect() as connection:
            _check(connection, place, create)
        store.migrate()
    except (Unavailable, SQLAlchemyError) as error:
        store.close()
        reason = error.__cause__ if isinstance(error, Unavailable) else error
        raise Unavailable(f"the store in {place} cannot be opened: {reason_of(reason or error, address)}") from None
    except BaseException:
        store.close()
        raise
    return store


def _check(connection: Connection, place: str, create: bool) -> None:
    """Raises FailedPrecondition where the database cannot hold a store, or holds none and none is to be made."""
    version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10_000
    if version < OLDEST:
        raise FailedPrecondition(f"{place} is of PostgreSQL {version}: {OLDEST} or later is needed")
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    if encoding != "UTF8":
        raise FailedPrecondition(f"{place} has the encoding {encoding}: make one with ENCODING 'UTF8'")
    if not made(connection):
        if not create:
            raise FailedPrecondition(f"there is no store in {place}")
    elif not connection.exec_driver_sql(_MAY_WRITE).scalar_one():
        raise FailedPrecondition(
            f"the user of the address may not write in {place}: the tables' owner, or one with its rights, may"
        )


# -- addresses


def address_of(url: str) -> URL:
    """Returns the address in a text. Raises StartError, without the text, for what is no address of a PostgreSQL database."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise StartError("store: is no address such as postgresql://user:password@host/database")
    if scheme not in SCHEMES:
        # What stands before :// is no secret, unless it is no scheme at all.
        told = f"{scheme}://" if scheme.isalnum() and len(scheme) <= 20 else "another scheme"
        raise StartError(f"store: {told} is not supported: postgresql:// is, and no store at all for SQLite in the data folder")
    try:
        address = make_url(url).set(drivername="postgresql+psycopg")
        port = address.port
    except (ArgumentError, ValueError):
        raise StartError(
            "store: the address cannot be read; is a port no number, or a character such as @ not written %40?"
        ) from None
    if "@" in (address.host or "") or "@" in (address.database or ""):
        raise StartError("store: an @ in a user's name or password is written %40 in an address, a : %3A, a / %2F, a % %25")
    if port is not None and not 0 < port <= 65535:
        raise StartError("store: the port is none: 1 to 65535 are")
    if not address.database:
        raise StartError("store: the address names no database: postgresql://user:password@host/database")
    return address


def place_of(address: URL) -> str:
    """Returns what of an address may be shown."""
    found = address.host or address.query.get("host") or "this machine"
    host = found if isinstance(found, str) else ", ".join(found)
    return f"the database {address.database} at {host}{f':{address.port}' if address.port else ''}"


def without_secrets(text: str, address: URL) -> str:
    """Returns a text in which the password of an address, should it be there, is three stars."""
    given = [str(address.password or ""), *(str(address.query.get(name, "")) for name in ("password", "sslpassword"))]
    for secret in given:
        for form in {secret, quote(secret), quote(secret, safe=""), unquote(secret)} - {""}:
            text = text.replace(form, "***")
    return text


def reason_of(error: BaseException, address: URL) -> str:
    """Returns what the driver said, in one line and without a password."""
    said = str(error.orig) if isinstance(error, DBAPIError) and error.orig is not None else str(error)
    return without_secrets(said.strip().partition("\n")[0] or type(error).__name__, address)


# -- engines


def reading_engine(address: URL, patience: float) -> Engine:
    """Returns the engine of the readers."""
    return _engine(address, patience, READERS, MORE_READERS, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


def _writing_engine(address: URL, patience: float) -> Engine:
    # READ COMMITTED: each statement sees what was committed before it. One snapshot would be the one from before the lock was had.
    engine = _engine(address, patience, 1, 0, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")

    @event.listens_for(engine, "begin")
    def _stand_in_line(connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITERS})")

    return engine


def _engine(address: URL, patience: float, size: int, more: int, begin: str) -> Engine:
    try:
        engine = create_engine(
            address,
            poolclass=QueuePool,
            pool_size=size,
            max_overflow=more,
            pool_timeout=patience,
            pool_use_lifo=True,  # the connection used last has the warmest caches
            hide_parameters=True,  # a message of the driver must not carry what somebody said
            connect_args=_ours(address, patience),
        )
    except ImportError as error:
        needed = "a store in PostgreSQL needs what the extra [postgresql] installs: pip install 'aforesaid[postgresql]'"
        raise StartError(f"{needed} ({error})") from None
    settings = {
        "lock_timeout": f"{max(1, round(patience * 1000))}ms",
        "idle_in_transaction_session_timeout": f"{_IDLE_SECONDS}s",
        "jit": "off",  # for statements that run for seconds; here are many that run for a millisecond
    }
    prepare = "; ".join(f"SET {name} = '{value}'" for name, value in settings.items())
    # What a commit has answered must outlive a crash: followers, too, go on from it.
    prepare += "; SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"

    @event.listens_for(engine, "connect")
    def _prepare(connection: DriverConnection, entry: ConnectionPoolEntry) -> None:
        entry.info[_NEW] = True
        connection.execute(prepare)

    @event.listens_for(engine, "checkout")
    def _begin(connection: DriverConnection, entry: ConnectionPoolEntry, _: PoolProxiedConnection) -> None:
        driver: Any = engine.dialect.dbapi
        new = entry.info.pop(_NEW, False)
        try:
            connection.execute(begin)
        except driver.Error as error:
            if new:
                raise
            raise InvalidatePoolError("the connection is gone") from error

    @event.listens_for(engine, "handle_error")
    def _say_no_more(context: ExceptionContext) -> None:
        silence(context.original_exception, context.sqlalchemy_exception)

    return engine


def silence(error: BaseException, wrapped: BaseException | None) -> None:
    """Takes out of an error of the driver, and of the one around it, what the server told beside the matter: it shows the row, and
    values, and there stands what somebody said.
    """
    diagnosis = getattr(error, "diag", None)
    if diagnosis is None or diagnosis.sqlstate is None:
        return  # the driver's own, as where there is no connection
    about_a_value = diagnosis.sqlstate.startswith("22")
    said = f"{type(error).__name__}: {'a value' if about_a_value else diagnosis.message_primary}"
    error.args = (said,)
    if wrapped is not None:
        wrapped.args = (said,)


def _ours(address: URL, patience: float) -> dict[str, Any]:
    """Returns what a connection is opened with, where the address does not say it otherwise."""
    wanted: dict[str, Any] = {
        "application_name": "aforesaid",
        "connect_timeout": max(2, round(patience)),  # libpq takes no less
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 4,
        "tcp_user_timeout": _SILENT_SECONDS * 1000,
    }
    return {name: value for name, value in wanted.items() if name not in address.query} | {
        "client_encoding": "utf8",
        "autocommit": True,  # the transactions are ours, see `_begin`
    }
