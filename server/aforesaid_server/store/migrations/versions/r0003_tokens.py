"""Bearer tokens, and grants of one agent to read another."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, ForeignKeyConstraint, Integer, LargeBinary, PrimaryKeyConstraint, String, Text

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NUMBER = BigInteger().with_variant(Integer(), "sqlite")
WORDS = Text().with_variant(Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Makes the tables."""
    op.create_table(
        "tokens",
        Column("token_id", WORDS, nullable=False),
        Column("digest", LargeBinary(32), nullable=False),
        Column("kind", String(16), nullable=False),
        Column("agent_pk", NUMBER),
        Column("name", WORDS, nullable=False),
        Column("scope", WORDS, nullable=False),
        Column("created_at", NUMBER, nullable=False),
        Column("expires_at", NUMBER),
        Column("revoked_at", NUMBER),
        PrimaryKeyConstraint("token_id", name=op.f("pk_tokens")),
        ForeignKeyConstraint(["agent_pk"], ["agents.pk"], name=op.f("fk_tokens_agent_pk")),
    )
    op.create_table(
        "grants",
        Column("number", NUMBER, nullable=False),
        Column("reader_pk", NUMBER, nullable=False),
        Column("target_pk", NUMBER, nullable=False),
        Column("why", WORDS, nullable=False),
        Column("granted_at", NUMBER, nullable=False),
        Column("granted_by", WORDS, nullable=False),
        Column("expires_at", NUMBER, nullable=False),
        Column("revoked_at", NUMBER),
        Column("revoked_by", WORDS, nullable=False),
        PrimaryKeyConstraint("number", name=op.f("pk_grants")),
        ForeignKeyConstraint(["reader_pk"], ["agents.pk"], name=op.f("fk_grants_reader_pk")),
        ForeignKeyConstraint(["target_pk"], ["agents.pk"], name=op.f("fk_grants_target_pk")),
    )
    op.create_index(op.f("ix_grants_reader_pk"), "grants", ["reader_pk"])
