"""What can go wrong, as one tree: each error carries its code and says in lower case what is wrong and with which value.

The doors translate these once (`api/interceptors.py`). Nothing here holds text of a conversation or of a query.

    AforesaidError
    ├── InvalidArgument      a field breaks a rule; names the field
    ├── Unauthenticated      no or bad token where tokens are required
    ├── PermissionDenied     the role may not read others; says nothing about the target
    ├── NotFound             no such agent, conversation or turn in the caller's scope
    ├── Aborted              `expected_revision` does not match
    ├── FailedPrecondition   the conversation is tombstoned
    ├── ResourceExhausted    a size limit
    ├── Unavailable          store, index or audit log cannot answer; retry
    ├── TooSlow              what the caller is to send does not come
    └── Stopped              the caller hung up or the deadline passed
"""

from __future__ import annotations

from enum import Enum


class Code(Enum):
    """The wire's names of the codes."""

    INVALID_ARGUMENT = "invalid_argument"
    UNAUTHENTICATED = "unauthenticated"
    PERMISSION_DENIED = "permission_denied"
    NOT_FOUND = "not_found"
    ABORTED = "aborted"
    FAILED_PRECONDITION = "failed_precondition"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    UNAVAILABLE = "unavailable"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    CANCELED = "canceled"


class AforesaidError(Exception):
    """Anything that the service foresees. `code` is the wire's, `message` goes to the caller as it is."""

    code: Code

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidArgument(AforesaidError):
    """A field breaks a rule. `field` is the full path, such as `pagination.limit`; the message begins with it."""

    code = Code.INVALID_ARGUMENT

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class Unauthenticated(AforesaidError):
    """No or bad token where tokens are required."""

    code = Code.UNAUTHENTICATED


class PermissionDenied(AforesaidError):
    """The role may not read others; says nothing about the target."""

    code = Code.PERMISSION_DENIED


class NotFound(AforesaidError):
    """No such agent, conversation or turn in the caller's scope."""

    code = Code.NOT_FOUND


class Aborted(AforesaidError):
    """`expected_revision` does not match."""

    code = Code.ABORTED


class FailedPrecondition(AforesaidError):
    """The conversation is tombstoned."""

    code = Code.FAILED_PRECONDITION


class ResourceExhausted(AforesaidError):
    """A size limit."""

    code = Code.RESOURCE_EXHAUSTED


class Unavailable(AforesaidError):
    """Store, index or audit log cannot answer; retrying is right."""

    code = Code.UNAVAILABLE


class TooSlow(AforesaidError):
    """What the caller is to send does not come."""

    code = Code.DEADLINE_EXCEEDED


class Stopped(AforesaidError):
    """The caller hung up or the deadline passed; nobody hears the answer."""

    code = Code.CANCELED


class StartError(Exception):
    """The service cannot start; says why, for people. No caller ever sees it."""
