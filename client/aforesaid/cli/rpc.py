"""`aforesaid rpc METHOD --field value ...`: any method of the services, its request as flags, its reply as proto3 JSON.

Methods and fields come from the descriptors: what the services learn is here without a line of code. They take a quarter of a
second to load, so nothing of them is before somebody asks for `rpc`.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

import click

from aforesaid._errors import InvalidArgument
from aforesaid.cli.interrupt import interruptible
from aforesaid.cli.options import service_flags
from aforesaid.cli.terminal import json_line

if TYPE_CHECKING:
    from protobuf import DescMethod, Message

    from aforesaid._wire import Wire

EXIT_CODE = "Exit code: 0 when it was answered, 2 on an error."
# The stubs of the wire, by service.
STUBS = {"AgentService": "agents", "ConversationService": "conversations", "AuditService": "audit"}


class Methods(click.Group):
    """The methods as commands, by their names in kebab case."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names, those of a service together."""
        return list(methods())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command of a method; its name may be written as in the proto file, too."""
        found = methods().get(kebab(cmd_name))
        return command_of(found) if found is not None else None


@click.group(cls=Methods, invoke_without_command=True, epilog=EXIT_CODE, subcommand_metavar="[METHOD [--FIELD VALUE]...]")
@click.pass_context
def rpc(context: click.Context) -> int:
    """Call any method of the services.

    The reply is proto3 JSON on one line. `aforesaid rpc` lists the methods, `aforesaid rpc METHOD --help` the fields of its
    request; the flags of the service, such as --url and --as, come after METHOD.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
    return 0


def kebab(name: str) -> str:
    """Returns a method's name as it is typed: search-transcripts for SearchTranscripts."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower().replace("_", "-")


def methods() -> dict[str, DescMethod]:
    """Returns every method of every service by its typed name."""
    from aforesaid.agent.v1 import agent_service_pb, audit_service_pb, conversation_service_pb

    files = (agent_service_pb.desc(), conversation_service_pb.desc(), audit_service_pb.desc())
    return {kebab(method.name): method for file in files for service in file.services for method in service.methods}


def command_of(method: DescMethod) -> click.Command:
    """Returns a method as a command. A stream of requests is read from stdin, a message a line."""
    from aforesaid.cli import fields

    is_stream = method.method_kind == "client_streaming"
    of_request = [] if is_stream else fields.flags(method.input)
    whole = "The whole request as proto3 JSON, flags go over it; - is stdin."
    stream = "The requests as proto3 JSON, one a line; - is stdin, and the default."
    body = click.Option(["--json", "body"], type=click.File(encoding="utf-8"), metavar="FILE", help=stream if is_stream else whole)

    def call(body: TextIO | None, **given: Any) -> int:
        values = {flag: given.pop(str(flag.option.name)) for flag in of_request}
        said = {flag: value for flag, value in values.items() if value not in (None, ())}
        if is_stream:
            requests = list(_lines(method.input.type, body or sys.stdin))
            return _answer(given, lambda wire: wire.import_turns(requests))  # type: ignore[arg-type]
        request = fields.request_of(method.input.type, _json(body), said)
        return _answer(given, lambda wire: wire.call(getattr(_stub(wire, method), _snake(method.name)), request))

    documented = getattr(_service_class(method), _snake(method.name))
    return click.Command(
        kebab(method.name),
        params=[*(flag.option for flag in of_request), body, *service_flags()],
        callback=call,
        help=fields.comment_of(documented),
        epilog=EXIT_CODE,
        context_settings={"token_normalize_func": lambda token: token.replace("_", "-")},
    )


def _answer(settings: dict[str, Any], call: Callable[[Wire], Message]) -> int:
    from aforesaid._client import Client

    with Client(**settings) as client:
        reply = interruptible(lambda: call(client.wire))
    sys.stdout.write(json_line(reply.to_json()) + "\n")
    return 0


def _stub(wire: Wire, method: DescMethod) -> object:
    return getattr(wire, STUBS[method.parent.name])


def _service_class(method: DescMethod) -> object:
    module = method.parent.file.name.removesuffix(".proto").replace("/", ".")
    return getattr(importlib.import_module(f"aforesaid.{module}_connect"), f"{method.parent.name}ClientSync")


def _snake(name: str) -> str:
    return kebab(name).replace("-", "_")


def _json(file: TextIO | None) -> object:
    """The body of a request; nothing given is an empty one."""
    if file is None:
        return {}
    try:
        body = json.load(file)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument.of("json", f"cannot be read: {error}") from None
    if not isinstance(body, dict):
        raise InvalidArgument.of("json", "must be an object")
    return body


def _lines(kind: type[Message], file: TextIO) -> Iterator[Message]:
    from aforesaid.cli.fields import request_of

    for number, line in enumerate(file, 1):
        if line.strip():
            try:
                yield request_of(kind, json.loads(line), {})
            except (ValueError, RecursionError, InvalidArgument) as error:
                raise InvalidArgument.of("json", f"line {number}: {error}") from None
