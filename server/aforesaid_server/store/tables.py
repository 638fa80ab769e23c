"""The tables of the store, as every engine has them. The migrations make them; this page is what the statements are built from.

    scopes ── scope_pairs                   each scope once, with a row for each of its pairs
       └── agents
              └── conversations             kept when deleted, as a tombstone
                     └── turns ── parts     the text stands in parts alone; a turn knows the length and the digest of its text
    changes, log                            what happened to turns, and how far the numbers have gone
    reads ── read_targets, read_scopes
    audit_head                              how far the records go
    deployment                              by what processes that share a store know each other
    tokens, grants                          who may call, and who may read whom beyond its role; revoked ones stay

A turn's key is its number: the place in the log of the change that wrote its present text. Ids and texts are compared byte by byte
and may hold any character. The counter in `log` is taken at the start of a write and given back at its end, so numbers are in the
order of the commits and without gaps in every engine.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from aforesaid_server.store.escaped import EscapedText

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

NUMBER = BigInteger().with_variant(Integer(), "sqlite")  # SQLite takes only INTEGER as the row's own key; it holds 64 bits there
WORDS = Text().with_variant(EscapedText(), "postgresql")  # any character, compared as bytes, as SQLite does

# A caller's scope is an AND of pairs. Over scopes, of which there are few, it costs little whichever pair is the rare one.
scopes = Table(
    "scopes",
    metadata,
    Column("pk", NUMBER, primary_key=True),
    Column("pairs", WORDS, nullable=False),  # canonical JSON
    Column("digest", LargeBinary(32), nullable=False),  # its SHA-256: a row of PostgreSQL's indexes ends at 2,704 bytes
    UniqueConstraint("digest"),
)

scope_pairs = Table(
    "scope_pairs",
    metadata,
    Column("key", WORDS, primary_key=True),
    Column("value", WORDS, primary_key=True),
    Column("scope_pk", NUMBER, ForeignKey("scopes.pk"), primary_key=True),
    sqlite_with_rowid=False,
)

agents = Table(
    "agents",
    metadata,
    Column("pk", NUMBER, primary_key=True),
    Column("agent_id", WORDS, nullable=False),
    Column("scope_pk", NUMBER, ForeignKey("scopes.pk"), nullable=False, index=True),
    Column("name", WORDS, nullable=False),
    Column("role", WORDS, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("parent_pk", NUMBER, ForeignKey("agents.pk"), index=True),
    UniqueConstraint("agent_id", "scope_pk"),
)

conversations = Table(
    "conversations",
    metadata,
    Column("pk", NUMBER, primary_key=True),
    Column("agent_pk", NUMBER, ForeignKey("agents.pk"), nullable=False),
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
    UniqueConstraint("conversation_id", "agent_pk"),
    Index(None, "agent_pk", "updated_at"),
    Index(None, "updated_at", "pk"),
)

turns = Table(
    "turns",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    Column("conversation_pk", NUMBER, ForeignKey("conversations.pk"), nullable=False),
    Column("turn_id", WORDS, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("role", WORDS, nullable=False),
    Column("created_at", NUMBER, nullable=False),
    Column("content_offset", NUMBER, nullable=False),
    Column("content_length", NUMBER, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("logged", NUMBER, nullable=False),  # the last change that puts it: its number, or a later one
    UniqueConstraint("conversation_pk", "turn_id"),
    UniqueConstraint("conversation_pk", "seq"),
    Index(None, "conversation_pk", "content_offset"),
)

_HAS_CALL_ID = text("call_id <> ''")

parts = Table(
    "parts",
    metadata,
    Column("turn_number", NUMBER, ForeignKey("turns.number"), primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("text", WORDS, nullable=False),  # what was said, the arguments as written or the result; empty for a file
    Column("name", WORDS, nullable=False),
    Column("call_id", WORDS, nullable=False),
    Column("media_type", WORDS, nullable=False),
    Column("is_error", Boolean, nullable=False),
    Index("ix_parts_call_id", "call_id", sqlite_where=_HAS_CALL_ID, postgresql_where=_HAS_CALL_ID),
)

changes = Table(
    "changes",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    Column("kind", String(20), nullable=False),
    Column("conversation_pk", NUMBER, ForeignKey("conversations.pk"), nullable=False),
    Column("turn_number", NUMBER, nullable=False),
    Column("replaces", NUMBER, nullable=False),
    Column("bulk", Boolean, nullable=False, server_default=false()),  # made by an import
)

log = Table(
    "log",
    metadata,
    Column("only", Integer, primary_key=True, autoincrement=False),
    Column("head", NUMBER, nullable=False),
    CheckConstraint('"only" = 1', name="one_row"),
)

reads = Table(
    "reads",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    Column("body", WORDS, nullable=False),
    Column("mac", LargeBinary, nullable=False),
)

read_targets = Table(
    "read_targets",
    metadata,
    Column("number", NUMBER, ForeignKey("reads.number"), primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("agent_id", WORDS, nullable=False),
    Column("agent_pk", NUMBER, ForeignKey("agents.pk")),
    Index(None, "agent_id", "number"),
    Index(None, "agent_pk", "number"),
)

read_scopes = Table(
    "read_scopes",
    metadata,
    Column("key", WORDS, primary_key=True),
    Column("value", WORDS, primary_key=True),
    Column("number", NUMBER, ForeignKey("reads.number"), primary_key=True),
    sqlite_with_rowid=False,
)

# How far the records go: the number and the MAC of the last one. Without the deployment's key nobody can make a proof of both. It
# stands at 0 until the first record.
audit_head = Table(
    "audit_head",
    metadata,
    Column("only", Integer, primary_key=True, autoincrement=False),
    Column("count", NUMBER, nullable=False),
    Column("mac", LargeBinary, nullable=False),
    Column("proof", LargeBinary, nullable=False),
    CheckConstraint('"only" = 1', name="one_row"),
)

# A keyed hash of nothing in particular, by which a process learns whether its secret is that of the others.
deployment = Table(
    "deployment",
    metadata,
    Column("only", Integer, primary_key=True, autoincrement=False),
    Column("secret_check", LargeBinary(32), nullable=False),
    CheckConstraint('"only" = 1', name="one_row"),
)

# A bearer token is found by its id, which is no secret; of the rest only a keyed hash is kept.
tokens = Table(
    "tokens",
    metadata,
    Column("token_id", WORDS, primary_key=True),
    Column("digest", LargeBinary(32), nullable=False),
    Column("kind", String(16), nullable=False),  # whose it is: "agent", "user" or "service"
    Column("agent_pk", NUMBER, ForeignKey("agents.pk")),
    Column("name", WORDS, nullable=False),  # the user's or service's; empty for an agent
    Column("scope", WORDS, nullable=False),  # the user's or service's, canonical JSON; an agent has its own
    Column("created_at", NUMBER, nullable=False),
    Column("expires_at", NUMBER),
    Column("revoked_at", NUMBER),
)

grants = Table(
    "grants",
    metadata,
    Column("number", NUMBER, primary_key=True),
    Column("reader_pk", NUMBER, ForeignKey("agents.pk"), nullable=False, index=True),
    Column("target_pk", NUMBER, ForeignKey("agents.pk"), nullable=False),
    Column("why", WORDS, nullable=False),
    Column("granted_at", NUMBER, nullable=False),
    Column("granted_by", WORDS, nullable=False),
    Column("expires_at", NUMBER, nullable=False),
    Column("revoked_at", NUMBER),
    Column("revoked_by", WORDS, nullable=False),
)
