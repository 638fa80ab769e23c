"""The first tables: scopes, agents, conversations, turns and parts, the log of changes, the audit records."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Text,
    UniqueConstraint,
)

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = BigInteger().with_variant(Integer(), "sqlite")
WORDS = Text().with_variant(Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Makes the tables, and the counter at 0."""
    op.create_table(
        "scopes",
        Column("pk", NUMBER, nullable=False),
        Column("pairs", WORDS, nullable=False),
        Column("digest", LargeBinary(32), nullable=False),
        PrimaryKeyConstraint("pk", name=op.f("pk_scopes")),
        UniqueConstraint("digest", name=op.f("uq_scopes_digest")),
    )
    op.create_table(
        "scope_pairs",
        Column("key", WORDS, nullable=False),
        Column("value", WORDS, nullable=False),
        Column("scope_pk", NUMBER, nullable=False),
        PrimaryKeyConstraint("key", "value", "scope_pk", name=op.f("pk_scope_pairs")),
        ForeignKeyConstraint(["scope_pk"], ["scopes.pk"], name=op.f("fk_scope_pairs_scope_pk")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "agents",
        Column("pk", NUMBER, nullable=False),
        Column("agent_id", WORDS, nullable=False),
        Column("scope_pk", NUMBER, nullable=False),
        Column("name", WORDS, nullable=False),
        Column("role", WORDS, nullable=False),
        Column("archived", Boolean, nullable=False),
        Column("parent_pk", NUMBER),
        PrimaryKeyConstraint("pk", name=op.f("pk_agents")),
        UniqueConstraint("agent_id", "scope_pk", name=op.f("uq_agents_agent_id_scope_pk")),
        ForeignKeyConstraint(["scope_pk"], ["scopes.pk"], name=op.f("fk_agents_scope_pk")),
        ForeignKeyConstraint(["parent_pk"], ["agents.pk"], name=op.f("fk_agents_parent_pk")),
    )
    op.create_index(op.f("ix_agents_scope_pk"), "agents", ["scope_pk"])
    op.create_index(op.f("ix_agents_parent_pk"), "agents", ["parent_pk"])
    op.create_table(
        "conversations",
        Column("pk", NUMBER, nullable=False),
        Column("agent_pk", NUMBER, nullable=False),
        Column("conversation_id", WORDS, nullable=False),
        Column("title", WORDS, nullable=False),
        Column("source_format", WORDS, nullable=False),
        Column("source_file", WORDS, nullable=False),
        Column("source_project", WORDS, nullable=False),
        Column("revision", NUMBER, nullable=False),
        Column("created_at", NUMBER, nullable=False),
        Column("updated_at", NUMBER, nullable=False),
        Column("turn_count", Integer, nullable=False),
        Column("content_length", NUMBER, nullable=False),
        Column("tombstoned_at", NUMBER),
        PrimaryKeyConstraint("pk", name=op.f("pk_conversations")),
        UniqueConstraint("conversation_id", "agent_pk", name=op.f("uq_conversations_conversation_id_agent_pk")),
        ForeignKeyConstraint(["agent_pk"], ["agents.pk"], name=op.f("fk_conversations_agent_pk")),
    )
    op.create_index(op.f("ix_conversations_agent_pk_updated_at"), "conversations", ["agent_pk", "updated_at"])
    op.create_index(op.f("ix_conversations_updated_at_pk"), "conversations", ["updated_at", "pk"])
    op.create_table(
        "turns",
        Column("number", NUMBER, autoincrement=False, nullable=False),
        Column("conversation_pk", NUMBER, nullable=False),
        Column("turn_id", WORDS, nullable=False),
        Column("seq", Integer, nullable=False),
        Column("role", WORDS, nullable=False),
        Column("created_at", NUMBER, nullable=False),
        Column("content_offset", NUMBER, nullable=False),
        Column("content_length", NUMBER, nullable=False),
        Column("digest", LargeBinary(32), nullable=False),
        Column("logged", NUMBER, nullable=False),
        PrimaryKeyConstraint("number", name=op.f("pk_turns")),
        UniqueConstraint("conversation_pk", "turn_id", name=op.f("uq_turns_conversation_pk_turn_id")),
        UniqueConstraint("conversation_pk", "seq", name=op.f("uq_turns_conversation_pk_seq")),
        ForeignKeyConstraint(["conversation_pk"], ["conversations.pk"], name=op.f("fk_turns_conversation_pk")),
    )
    op.create_index(op.f("ix_turns_conversation_pk_content_offset"), "turns", ["conversation_pk", "content_offset"])
    op.create_table(
        "parts",
        Column("turn_number", NUMBER, autoincrement=False, nullable=False),
        Column("place", Integer, autoincrement=False, nullable=False),
        Column("kind", String(16), nullable=False),
        Column("text", WORDS, nullable=False),
        Column("name", WORDS, nullable=False),
        Column("call_id", WORDS, nullable=False),
        Column("media_type", WORDS, nullable=False),
        Column("is_error", Boolean, nullable=False),
        PrimaryKeyConstraint("turn_number", "place", name=op.f("pk_parts")),
        ForeignKeyConstraint(["turn_number"], ["turns.number"], name=op.f("fk_parts_turn_number")),
    )
    op.create_table(
        "changes",
        Column("number", NUMBER, autoincrement=False, nullable=False),
        Column("kind", String(20), nullable=False),
        Column("conversation_pk", NUMBER, nullable=False),
        Column("turn_number", NUMBER, nullable=False),
        Column("replaces", NUMBER, nullable=False),
        PrimaryKeyConstraint("number", name=op.f("pk_changes")),
        ForeignKeyConstraint(["conversation_pk"], ["conversations.pk"], name=op.f("fk_changes_conversation_pk")),
    )
    log = op.create_table(
        "log",
        Column("only", Integer, autoincrement=False, nullable=False),
        Column("head", NUMBER, nullable=False),
        PrimaryKeyConstraint("only", name=op.f("pk_log")),
        CheckConstraint('"only" = 1', name=op.f("ck_log_one_row")),
    )
    op.bulk_insert(log, [{"only": 1, "head": 0}])
    op.create_table(
        "reads",
        Column("number", NUMBER, autoincrement=False, nullable=False),
        Column("body", WORDS, nullable=False),
        Column("mac", LargeBinary, nullable=False),
        PrimaryKeyConstraint("number", name=op.f("pk_reads")),
    )
    op.create_table(
        "read_targets",
        Column("number", NUMBER, autoincrement=False, nullable=False),
        Column("place", Integer, autoincrement=False, nullable=False),
        Column("agent_id", WORDS, nullable=False),
        Column("agent_pk", NUMBER),
        PrimaryKeyConstraint("number", "place", name=op.f("pk_read_targets")),
        ForeignKeyConstraint(["number"], ["reads.number"], name=op.f("fk_read_targets_number")),
        ForeignKeyConstraint(["agent_pk"], ["agents.pk"], name=op.f("fk_read_targets_agent_pk")),
    )
    op.create_index(op.f("ix_read_targets_agent_id_number"), "read_targets", ["agent_id", "number"])
    op.create_index(op.f("ix_read_targets_agent_pk_number"), "read_targets", ["agent_pk", "number"])
    op.create_table(
        "read_scopes",
        Column("key", WORDS, nullable=False),
        Column("value", WORDS, nullable=False),
        Column("number", NUMBER, nullable=False),
        PrimaryKeyConstraint("key", "value", "number", name=op.f("pk_read_scopes")),
        ForeignKeyConstraint(["number"], ["reads.number"], name=op.f("fk_read_scopes_number")),
        sqlite_with_rowid=False,
    )
