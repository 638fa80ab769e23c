"""What `agents`, `conversations` and `reads` share: they ask page by page and print a table, fields in a pipe, or JSON lines."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import click

from aforesaid.cli.interrupt import interruptible
from aforesaid.cli.options import NUMBER, colour_option, json_option, scope_option, service_options
from aforesaid.cli.pager import print_pages
from aforesaid.cli.table import Column, aligned, tab_separated
from aforesaid.cli.terminal import COLOURS, PLAIN, json_line, wants_colour

if TYPE_CHECKING:
    from protobuf import Message

    from aforesaid.agent.v1.types_pb import Pagination

FULL_PAGE = 100
NOTHING = 1

Entry = TypeVar("Entry", bound="Message")
Command = TypeVar("Command", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Listing(Generic[Entry]):
    """A list of the service: how a page of it is asked for, and how an entry is told.

    `row` gets whether somebody reads it: times are then those of this machine, and words stand for what is empty. `none` is what
    is said on a terminal where there are no entries.
    """

    ask: Callable[[Pagination], tuple[Sequence[Entry], str]]
    columns: Sequence[Column]
    row: Callable[[Entry, bool], Sequence[str]]
    none: str


def listing_options(command: Command) -> Command:
    """Adds the flags of a list: --limit, --scope, --json, --color and those of the service."""
    command = service_options(command)
    command = colour_option(command)
    command = json_option("Print each entry as proto3 JSON on a line of its own.")(command)
    command = scope_option(command)
    return click.option("--limit", metavar="N", type=NUMBER, default=0, help="End after so many.  [all]")(command)


def print_listing(listing: Listing[Entry], limit: int, as_json: bool, colour: str) -> int:
    """Prints a list, all of it or its first `limit` entries; returns the exit code."""
    pages = _pages(listing.ask, limit)
    if as_json:
        lines: Iterable[str] = (json_line(entry.to_json()) for page in pages for entry in page)
        return 0 if print_pages([lines], at_once=True) else NOTHING
    if sys.stdout.isatty():
        style = COLOURS if wants_colour(True, os.environ, colour) else PLAIN
        width = shutil.get_terminal_size().columns
        lines = (
            line for page in pages for line in aligned(listing.columns, [listing.row(entry, True) for entry in page], width, style)
        )
    else:
        lines = (line for page in pages for line in tab_separated(listing.row(entry, False) for entry in page))
    if print_pages([lines]):
        return 0
    if sys.stdout.isatty():
        click.echo(listing.none, err=True)
    return NOTHING


def _pages(ask: Callable[[Pagination], tuple[Sequence[Entry], str]], limit: int) -> Iterator[Sequence[Entry]]:
    from aforesaid.agent.v1.types_pb import Pagination

    cursor, left = "", limit
    while True:
        # What is too little is the service's to refuse.
        wanted = min(left, FULL_PAGE) if limit else FULL_PAGE
        page, cursor = interruptible(lambda: ask(Pagination(limit=wanted, cursor=cursor)))  # noqa: B023 - called at once
        yield page
        left -= len(page)
        if not cursor or (limit and left <= 0):
            return
