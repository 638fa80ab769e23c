"""The audit log in a process that has not the deployment's key: it is neither written nor checked, so nothing that goes into it is
shown.

Such a process was opened for a while beside others, on the store that they share, without the secret that is theirs.
"""

from __future__ import annotations

from aforesaid_server.access import Call
from aforesaid_server.audit import Audit, Reading, Verification
from aforesaid_server.errors import FailedPrecondition

_NO_KEY = "the audit log cannot be {} without the deployment's secret: name data, a folder that holds it"


class AuditWithoutKey(Audit):
    """Refuses what wants the key. The records that others wrote are listed as they are."""

    def record(self, call: Call, reading: Reading) -> None:
        """Raises FailedPrecondition."""
        del call, reading
        raise FailedPrecondition(_NO_KEY.format("written"))

    def verify(self, call: Call) -> Verification:
        """Raises FailedPrecondition."""
        del call
        raise FailedPrecondition(_NO_KEY.format("checked"))
