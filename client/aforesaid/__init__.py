"""Searches what was said in the conversations of AI agents: the client of the service, its values and its errors.

    from aforesaid import Client

    with Client() as client:
        for page in client.search('"login page" -test', every_agent=True):
            for hit in page.matches:
                print(hit.name, hit.snippet)

AsyncClient is the same for asyncio.

Each name is loaded when it is first used: the wire takes a quarter of a second, and neither `aforesaid --help` nor the service,
which shares the nouns of `aforesaid.model`, needs it.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from aforesaid._client import AsyncClient, Client
    from aforesaid._config import Config
    from aforesaid._errors import (
        Aborted,
        AforesaidError,
        Canceled,
        DeadlineExceeded,
        FailedPrecondition,
        FieldViolation,
        Internal,
        InvalidArgument,
        NotFound,
        PermissionDenied,
        ResourceExhausted,
        Unauthenticated,
        Unavailable,
        Unexpected,
        Unreachable,
    )
    from aforesaid._replies import (
        Appended,
        AuditCheck,
        AuditFault,
        CompiledContext,
        ContextCandidate,
        ContextTurn,
        FoundTurns,
        Imported,
        Indexed,
        LeftOut,
        PartKind,
        ReadRecord,
        ResolvedSource,
        SearchHit,
        SearchPage,
        StoredConversation,
        StoredTurn,
        TurnHit,
    )
    from aforesaid.model import Agent, Conversation, File, Part, Reasoning, Source, SourceRef, Text, ToolCall, ToolResult, Turn

__all__ = [
    "Aborted",
    "AforesaidError",
    "Agent",
    "Appended",
    "AsyncClient",
    "AuditCheck",
    "AuditFault",
    "Canceled",
    "Client",
    "CompiledContext",
    "Config",
    "ContextCandidate",
    "ContextTurn",
    "Conversation",
    "DeadlineExceeded",
    "FailedPrecondition",
    "FieldViolation",
    "File",
    "FoundTurns",
    "Imported",
    "Indexed",
    "Internal",
    "InvalidArgument",
    "LeftOut",
    "NotFound",
    "Part",
    "PartKind",
    "PermissionDenied",
    "ReadRecord",
    "Reasoning",
    "ResolvedSource",
    "ResourceExhausted",
    "SearchHit",
    "SearchPage",
    "Source",
    "SourceRef",
    "StoredConversation",
    "StoredTurn",
    "Text",
    "ToolCall",
    "ToolResult",
    "Turn",
    "TurnHit",
    "Unauthenticated",
    "Unavailable",
    "Unexpected",
    "Unreachable",
    "__version__",
]

# The light ones first: whoever asks for an error does not wait for the wire.
_HOMES = ("model", "_errors", "_config", "_replies", "_client")


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("aforesaid")
    if name in __all__:
        for home in _HOMES:
            module = importlib.import_module(f"aforesaid.{home}")
            if name in vars(module):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
