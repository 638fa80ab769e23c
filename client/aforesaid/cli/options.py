"""What several commands take: a flag for each setting of `_config.py`, colours, scopes; and the kinds of values.

A value that is no UTF-8 is refused here, by the name of its flag: Python keeps bytes of the command line that it cannot decode as
lone surrogates, which no request can carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from aforesaid._config import SETTINGS, Setting
from aforesaid._errors import InvalidArgument

Command = TypeVar("Command", bound=Callable[..., Any])

# The least that a number on the wire can be: what is too little is the service's to refuse.
LEAST, MOST = -(2**31), 2**31 - 1


def service_flags() -> list[click.Option]:
    """Returns a flag for each setting of the client, under the names that Config.read takes."""
    return [
        click.Option([setting.flag, setting.name], type=_kind(setting), metavar=setting.placeholder, help=_help(setting))
        for setting in SETTINGS
    ]


def _kind(setting: Setting) -> click.ParamType[str]:
    return _CALLER if setting.name == "agent_id" else click.STRING


def _help(setting: Setting) -> str:
    return f"{setting.help}  [{setting.variable}{f'; {setting.default}' if setting.default else ''}]"


def service_options(command: Command) -> Command:
    """Adds the flags of the client's settings to a command."""
    for setting in reversed(SETTINGS):
        command = click.option(setting.flag, setting.name, type=_kind(setting), metavar=setting.placeholder, help=_help(setting))(
            command
        )
    return command


def name_of(param: click.Parameter | None) -> str:
    """Returns what a parameter is called on the command line, without its minuses."""
    if param is None:
        return "value"
    if isinstance(param, click.Argument) and param.metavar:
        return param.metavar.lower()
    return max(param.opts, key=len).lstrip("-")


class TextType(click.ParamType[str]):
    """A text that can be sent. `hints` are values that a shell completes."""

    name = "text"

    def __init__(self, *hints: str) -> None:
        self._hints = hints

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the value. Raises InvalidArgument where it is no UTF-8."""
        try:
            str(value).encode()
        except UnicodeEncodeError:
            raise InvalidArgument.of(name_of(param), f"must be UTF-8: {value!r}") from None
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Offers the hints that begin so."""
        return [CompletionItem(hint) for hint in self._hints if hint.startswith(incomplete)]


class KindType(click.ParamType[tuple[str, ...]]):
    """What a part of a turn is, in the words of people: `tool-result` is plain text and JSON, which can be told apart, too."""

    name = "kind"
    kinds: Mapping[str, tuple[str, ...]] = {
        "text": ("text",),
        "reasoning": ("reasoning",),
        "tool-call": ("tool_call",),
        "tool-result": ("tool_result_text", "tool_result_json"),
        "tool-result-text": ("tool_result_text",),
        "tool-result-json": ("tool_result_json",),
        "file": ("file",),
    }

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Returns the kinds as the client names them. Raises InvalidArgument that lists the words."""
        if isinstance(value, tuple):
            return value
        word = str(value).lower().replace("_", "-")
        if word not in self.kinds:
            raise InvalidArgument.of(name_of(param), f"must be one of {', '.join(self.kinds)}: {value}")
        return self.kinds[word]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Offers the words that begin so."""
        return [CompletionItem(word) for word in self.kinds if word.startswith(incomplete)]


class PairType(click.ParamType[tuple[str, str]]):
    """KEY=VALUE; the value may hold further `=`."""

    name = "pair"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Returns key and value. Raises InvalidArgument where there is no `=`."""
        if isinstance(value, tuple):
            return value
        key, sign, said = TEXT.convert(value, param, ctx).partition("=")
        if not sign:
            raise InvalidArgument.of(name_of(param), f"must be KEY=VALUE: {value}")
        return key, said


class NumberType(click.ParamType[int]):
    """A whole number; what does not fit into the field of a request becomes the nearest that does."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Returns the number. Raises BadParameter for what is none."""
        number = click.INT.convert(value, param, ctx)
        return max(LEAST, min(int(number), MOST))


class CallerType(click.ParamType[str]):
    """Who calls. Where a script's variable is not set it must not be the user, who may read everything."""

    name = "caller"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the value as it is. Raises InvalidArgument where it is empty."""
        if value == "":
            raise InvalidArgument.of(name_of(param), "is empty: without the flag it is the user who calls")
        return str(value)


_CALLER = CallerType()
TEXT = TextType()
ROLE = TextType("user", "assistant", "tool", "system")
KIND = KindType()
PAIR = PairType()
NUMBER = NumberType()


def scope_of(pairs: Iterable[tuple[str, str]], name: str = "scope") -> dict[str, str]:
    """Returns the map that repeated KEY=VALUE make. Raises InvalidArgument for a key that is given twice."""
    scope: dict[str, str] = {}
    for key, value in pairs:
        if key in scope:
            raise InvalidArgument.of(name, f"{key} is given twice")
        scope[key] = value
    return scope


def scope_option(command: Command) -> Command:
    """Adds --scope, which the command gets as `scope`, a tuple of pairs."""
    text = "Narrow the scope to records that have this pair; several narrow further."
    return click.option("--scope", metavar="KEY=VALUE", type=PAIR, multiple=True, help=text)(command)


def json_option(text: str) -> Callable[[Command], Command]:
    """Adds --json, which the command gets as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def colour_option(command: Command) -> Command:
    """Adds --color, which the command gets as `colour`."""
    text = "Whether to colour.  [auto; NO_COLOR, FORCE_COLOR]"
    return click.option("--color", "colour", type=click.Choice(["auto", "always", "never"]), default="auto", help=text)(command)
