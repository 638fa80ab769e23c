"""Finds the parts of one tool call, the call and its results, by their call id."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_HAS_ONE = text("call_id <> ''")


def upgrade() -> None:
    """Makes the index; most parts belong to no call."""
    op.create_index(op.f("ix_parts_call_id"), "parts", ["call_id"], sqlite_where=_HAS_ONE, postgresql_where=_HAS_ONE)
