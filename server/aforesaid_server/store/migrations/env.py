"""What Alembic runs around the revisions: takes the connection, and the transaction, that `upgrade` was given.

Not for the `alembic` command, which would bring neither.
"""

from __future__ import annotations

from alembic import context

from aforesaid_server.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
