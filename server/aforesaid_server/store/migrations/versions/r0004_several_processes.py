"""What several processes over one store need: which changes an import made, how far the audit log goes, and whose store it is.

The head of an audit log that is there already stays in the file `audit.head`: here it stands at 0, and moves with the next record.
It is not taken from the table, or a log that was cut off before would look as if it were whole.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    column,
    false,
    table,
)

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NUMBER = BigInteger().with_variant(Integer(), "sqlite")


def upgrade() -> None:
    """Makes the column and the tables."""
    op.add_column("changes", Column("bulk", Boolean, nullable=False, server_default=false()))
    op.create_table(
        "audit_head",
        Column("only", Integer, autoincrement=False, nullable=False),
        Column("count", NUMBER, nullable=False),
        Column("mac", LargeBinary, nullable=False),
        Column("proof", LargeBinary, nullable=False),
        PrimaryKeyConstraint("only", name=op.f("pk_audit_head")),
        CheckConstraint('"only" = 1', name=op.f("ck_audit_head_one_row")),
    )
    head = table(
        "audit_head", column("only", Integer), column("count", NUMBER), column("mac", LargeBinary), column("proof", LargeBinary)
    )
    op.execute(head.insert().values(only=1, count=0, mac=bytes(32), proof=b""))
    op.create_table(
        "deployment",
        Column("only", Integer, autoincrement=False, nullable=False),
        Column("secret_check", LargeBinary(32), nullable=False),
        PrimaryKeyConstraint("only", name=op.f("pk_deployment")),
        CheckConstraint('"only" = 1', name=op.f("ck_deployment_one_row")),
    )
