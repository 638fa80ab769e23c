"""The revisions of the tables, as Alembic files in the package, and the one way to apply them: in place, when a store is opened.

A change of `tables.py` comes with a new file in `versions/`; a test compares what the revisions make with the tables. A store whose
revision this version does not know was written by a newer one and is refused, since its rows may mean something else.
"""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from aforesaid_server.errors import FailedPrecondition

_one_at_a_time = threading.Lock()  # Alembic keeps the environment that it runs in a global


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


def newest() -> str:
    """Returns the newest revision."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def made(connection: Connection) -> bool:
    """Tells whether the tables of a store are there, of whatever revision."""
    return bool(MigrationContext.configure(connection).get_current_heads())


def upgrade(connection: Connection) -> None:
    """Brings the tables to the newest revision, inside the transaction of the connection.

    Raises FailedPrecondition if the store has a revision that is not known here.
    """
    config = _config()
    config.attributes["connection"] = connection
    script = ScriptDirectory.from_config(config)
    known = {revision.revision for revision in script.walk_revisions()}
    heads = MigrationContext.configure(connection).get_current_heads()
    unknown = sorted(set(heads) - known)
    if unknown:
        newest = script.get_current_head()
        raise FailedPrecondition(
            f"the store has revision {', '.join(unknown)}, this version of aforesaid knows none after {newest}: use a newer version"
        )
    if set(heads) != set(script.get_heads()):
        with _one_at_a_time:
            command.upgrade(config, "head")
