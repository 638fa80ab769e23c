"""Tables: aligned columns on a terminal, one record below the other where it is too narrow, tab-separated fields in a pipe.

Nothing that is needed as it stands, such as an id, is ever cut. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from aforesaid.cli.terminal import Style, cells, cut, visible

GAP = "  "
# A column that may be cut is worth its place from this width on.
SHORTEST = 12


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, whether it may be cut, whether it stands to the right, whether only programs are told it."""

    heading: str
    may_be_cut: bool = False
    to_the_right: bool = False
    in_pipes_only: bool = False


def tab_separated(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yields each row as its fields with tabs between, without a heading; a tab in a field is a blank."""
    for row in rows:
        yield "\t".join(map(visible, row))


def aligned(columns: Sequence[Column], rows: Iterable[Sequence[str]], width: int, style: Style) -> Iterator[str]:
    """Yields a heading and the rows in at most `width` columns of a terminal, or each row as a record of lines."""
    shown = [at for at, column in enumerate(columns) if not column.in_pipes_only]
    kept = [columns[at] for at in shown]
    table = [[visible(row[at]) for at in shown] for row in rows]
    widths = _widths(kept, table, width)
    if widths is None:
        yield from _records(kept, table, style)
        return
    if table:
        yield f"{style.heading}{_line(kept, [column.heading for column in kept], widths)}{style.end}"
    yield from (_line(kept, row, widths) for row in table)


def _widths(columns: Sequence[Column], table: Sequence[Sequence[str]], width: int) -> list[int] | None:
    widths = [max(map(cells, [column.heading, *(row[at] for row in table)])) for at, column in enumerate(columns)]
    too_much = sum(widths) + len(GAP) * (len(columns) - 1) - width
    # The widest first, so that what is short stays whole.
    for at in sorted(range(len(columns)), key=lambda at: -widths[at]):
        if too_much > 0 and columns[at].may_be_cut:
            given = max(0, min(too_much, widths[at] - max(SHORTEST, cells(columns[at].heading))))
            widths[at] -= given
            too_much -= given
    return None if too_much > 0 else widths


def _line(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> str:
    fields = []
    for column, text, width in zip(columns, row, widths, strict=True):
        shown = cut(text, width)
        blanks = " " * (width - cells(shown))
        fields.append(blanks + shown if column.to_the_right else shown + blanks)
    return GAP.join(fields).rstrip()


def _records(columns: Sequence[Column], table: Iterable[Sequence[str]], style: Style) -> Iterator[str]:
    for number, row in enumerate(table):
        if number:
            yield ""
        for column, text in zip(columns, row, strict=True):
            if text:
                yield f"{style.place}{column.heading.lower()}{style.end} {text}"
