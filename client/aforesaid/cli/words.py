"""Tells the words of a query from the options between them: `charged -twice` is a query, and a slip such as `--agnet` is none.

Left to itself click reads `-twice` as the options -t, -w and so on, and `-this` as a call for help, since -h is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import click

ENDS_OPTIONS = "--"


class QueryCommand(click.Command):
    """A command whose arguments are a query: what begins with one minus, and is no option, is a word of it.

    `way_out` says how a word that looks like an option is typed.
    """

    way_out = "to search for it put -- before the query"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hands click the options first and then the words, so that it takes none of them for an option."""
        if ctx.resilient_parsing:
            # A shell asks what could follow: what is typed so far may be anything.
            return super().parse_args(ctx, args)
        takes_value = {
            name: isinstance(option, click.Option) and not option.is_flag
            for option in self.get_params(ctx)
            for name in (*option.opts, *option.secondary_opts)
            if name.startswith("-")
        }
        try:
            options, words = apart(args, takes_value)
        except UnknownOption as error:
            raise click.UsageError(f"{error} {self.way_out}" if error.may_be_a_word else str(error), ctx) from None
        return super().parse_args(ctx, [*options, ENDS_OPTIONS, *words])


class IdCommand(QueryCommand):
    """A command that takes an id, which may begin with a minus."""

    way_out = "to name what begins so put -- before the id"


class UnknownOption(ValueError):
    """What looks like an option and is none, or lacks its value; whether it may be meant as a word."""

    def __init__(self, message: str, *, may_be_a_word: bool = False) -> None:
        super().__init__(message)
        self.may_be_a_word = may_be_a_word


def apart(arguments: Iterable[str], takes_value: Mapping[str, bool]) -> tuple[list[str], list[str]]:
    """Returns the options, each with its value, and the words, both in their order. Raises UnknownOption.

    `takes_value` holds the known options. An unknown one that begins with two minuses is a word where it stands after another word
    and resembles none of them, as in `git push --force`.
    """
    options: list[str] = []
    words: list[str] = []
    left = iter(arguments)
    for argument in left:
        name = argument.partition("=")[0] if argument.startswith("--") else argument
        if argument == ENDS_OPTIONS:
            words += left
        elif name in takes_value:
            options.append(argument)
            if takes_value[name] and name == argument:
                value = next(left, None)
                if value is None:
                    raise UnknownOption(f"option {name} requires an argument")
                options.append(value)
        else:
            if argument.startswith("--"):
                _check_is_a_word(name, words, takes_value)
            words.append(argument)
    return options, words


def _check_is_a_word(name: str, before: list[str], known: Iterable[str]) -> None:
    meant = get_close_matches(name.strip("-"), [option.strip("-") for option in known if option.startswith("--")], 1)
    if meant or not before:
        guess = f", did you mean --{meant[0]}?" if meant else ":"
        raise UnknownOption(f"no such option {name}{guess}", may_be_a_word=True)
