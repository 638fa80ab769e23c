"""Opens the store that a deployment has: the PostgreSQL database that its settings name, or the SQLite file in its data folder; and
the keys in that folder, which must be those of the store's deployment.
"""

from __future__ import annotations

from pathlib import Path

from aforesaid_server.errors import StartError
from aforesaid_server.folder import SECRET, STORE
from aforesaid_server.keys import Keys, keys_in
from aforesaid_server.settings import Folder
from aforesaid_server.store import Store
from aforesaid_server.store.postgres import open_postgres
from aforesaid_server.store.sql import PATIENCE, SqlStore, open_sqlite


def open_store(settings: Folder, *, create: bool = True, patience: float = PATIENCE) -> SqlStore:
    """Opens the store and brings its tables to the newest revision. Raises what `open_sqlite` and `open_postgres` raise."""
    address = settings.store.get_secret_value()
    if address:
        return open_postgres(address, create=create, patience=patience)
    return open_sqlite(settings.data / STORE, create=create, patience=patience)


def keys_of_deployment(data: Path, store: Store) -> Keys:
    """Returns the keys of a data folder, made if it has none. A store that several nodes share is of those that have one secret.

    Raises StartError where the secret cannot be read, and where it is not that of the other nodes.
    """
    there = data / SECRET
    try:
        if store.shared and not there.exists() and store.secret_check() is not None:
            raise StartError(f"data folder {data}: holds no {SECRET}: copy that of another node, which serves the same store")
        keys = keys_in(there)
    except (OSError, ValueError) as error:
        raise StartError(f"data folder {data}: {error}") from None
    if store.shared and not store.claim(keys.check):
        raise StartError(
            f"data folder {data}: its {SECRET} is not that of the other nodes, which serve the same store: copy theirs"
        )
    return keys
