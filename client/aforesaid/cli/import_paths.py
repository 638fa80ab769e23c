"""`aforesaid import`: files of agents on this machine, sent to the service; a bar on the terminal, then what became of everything.

The formats read, the client sends. Stopped anywhere and run again, it changes nothing that was taken and goes on with the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any

import click

from aforesaid._errors import AforesaidError
from aforesaid.cli.import_sums import import_lines, import_troubles
from aforesaid.cli.interrupt import interruptible
from aforesaid.cli.options import service_options
from aforesaid.cli.progress import Bar, bar
from aforesaid.cli.terminal import error_line

if TYPE_CHECKING:
    # At run time in the functions below: they take a third of a second to load, too long for --help.
    from aforesaid._client import Client
    from aforesaid.cli.tally import Tally
    from aforesaid.formats import FoundFile
    from aforesaid.model import Agent, Conversation

INCOMPLETE = 1


@click.command(
    "import", epilog="Exit code: 0, 1 when something could not be read or sent, 2 when nothing was sent because of an error."
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--verbose", "-v", is_flag=True, help="Tell each reason for which lines are skipped, and each file left out.")
@service_options
def import_paths(paths: tuple[str, ...], verbose: bool, **settings: Any) -> int:
    """Send transcripts to the service.

    PATH is a file, a project folder or a folder of such folders, for example ~/.claude or ~/.codex: sessions of Claude Code and of
    Codex and chat messages as JSON lines are read. The same file again changes nothing. What is skipped is counted and told.
    """
    from aforesaid._client import Client
    from aforesaid.cli.tally import Tally
    from aforesaid.formats import PathError

    tally = Tally()
    with Client(**settings) as client:
        try:
            with bar() as drawn:
                interruptible(lambda: _import(paths, client, tally, drawn))
        except PathError as error:
            click.echo(error_line(str(error)), err=True)
            return INCOMPLETE
        except AforesaidError as error:
            if not tally.acknowledged and not tally.turns.refused:
                raise
            tally.cut_short = True
            tally.troubles.append(error.message)
        except KeyboardInterrupt:
            tally.cut_short = True
            if tally.acknowledged:
                _tell(tally, verbose)
            raise
    return _tell(tally, verbose)


def _import(paths: Iterable[str], client: Client, tally: Tally, drawn: Bar) -> None:
    from aforesaid.formats import find_files

    files: list[FoundFile] = []
    for found in find_files(paths):
        if found.why:
            tally.leave_out(found)
        else:
            files.append(found)
    if not files and not tally.troubles:
        tally.troubles.append("nothing to import: no file holds transcripts of a known format")
    drawn.expect(sum(found.size for found in files))
    client.import_turns(_chunks(files, tally, drawn), on_stream=tally.take)


def _chunks(files: Iterable[FoundFile], tally: Tally, drawn: Bar) -> Iterator[tuple[Agent, Conversation]]:
    from aforesaid.formats import Replays, read_file

    replays = Replays()
    for found in files:
        drawn.begin(found.path.name)
        reading = read_file(found, replays=replays, on_bytes=drawn.advance)
        tally.begin(reading)
        try:
            for chunk in reading:
                yield chunk.agent, chunk.conversation
        except OSError as error:
            tally.troubles.append(f"{found.path}: cannot be read: {(error.strerror or type(error).__name__).lower()}")


def _tell(tally: Tally, verbose: bool) -> int:
    tally.settle()
    tally = copy(tally)  # the call of an import that was interrupted goes on counting until the process ends
    for line in import_lines(tally, verbose=verbose):
        click.echo(line)
    troubles = list(import_troubles(tally))
    for trouble in troubles:
        click.echo(error_line(trouble), err=True)
    return INCOMPLETE if troubles else 0
