"""The command line `aforesaid`: one small file per command, all of it on top of the client.

Results go to stdout, everything else to stderr; errors are lower case and begin with the program's name. What takes long to load is
loaded by the command that needs it: `aforesaid --help` takes 80 ms, most of it click; loading the wire takes three times that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

from aforesaid._errors import AforesaidError, Unauthenticated, Unreachable
from aforesaid.cli.agents import agents
from aforesaid.cli.completion import VARIABLE, answer_shell, completion
from aforesaid.cli.conversations import conversations
from aforesaid.cli.delete import delete
from aforesaid.cli.import_paths import import_paths
from aforesaid.cli.reads import reads
from aforesaid.cli.rpc import rpc
from aforesaid.cli.search import search
from aforesaid.cli.show import show
from aforesaid.cli.terminal import PROGRAM, error_line

# What a shell says of a program that Ctrl-C ended.
INTERRUPTED = 130
FAILED = 2


def _print_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        import aforesaid

        click.echo(f"aforesaid {aforesaid.__version__}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version.")
def commands() -> None:
    """Search what was said in the conversations of AI agents.

    The service is started with `aforesaid-server serve`.
    """


for _command in (agents, completion, conversations, delete, import_paths, reads, rpc, search, show):
    commands.add_command(_command)


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns the exit code; errors are told on stderr."""
    try:
        # Not click's own main(): it prints errors its way, and ends with 1 where a reader such as `head` has seen enough.
        with commands.make_context(PROGRAM, list(arguments)) as context:
            code: int | None = commands.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return FAILED
    except click.ClickException as error:
        hint = f"; try '{error.ctx.command_path} --help'" if isinstance(error, click.UsageError) and error.ctx else ""
        click.echo(error_line(_lowered(error.format_message()) + hint), err=True)
        return FAILED
    except AforesaidError as error:
        click.echo(error_line(error.message + _way_out(error)), err=True)
        return FAILED
    return code or 0


def _way_out(error: AforesaidError) -> str:
    """Says what a person may do about an error that does not say it by itself."""
    # Nothing else is known to be cured by a service on this machine: a name that is not found, a certificate.
    if isinstance(error, Unreachable) and error.message.endswith(": connection refused"):
        return "; `aforesaid-server serve` starts a service"
    return "; --token or AFORESAID_TOKEN gives one" if isinstance(error, Unauthenticated) else ""


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")


def _open_closed() -> None:
    """Opens to nothing each of the three streams that whoever started this has closed: Python has None there, and the next file or
    connection would take the place.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it stays open to the end


def main() -> None:
    """Is the program: runs the command of sys.argv and exits."""
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its number instead of an error.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        asked = os.environ.get(VARIABLE)
        code = answer_shell(commands, asked) if asked else run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. Python would complain again while it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        # What calls and files raise is told by `run`: left is what is printed to, such as a full disk.
        click.echo(error_line(f"cannot print: {(error.strerror or type(error).__name__).lower()}"), err=True)
        code = FAILED
    except (KeyboardInterrupt, click.Abort):
        click.echo(error_line("interrupted"), err=True)
        code = INTERRUPTED
    _end(code)


def _end(code: int) -> NoReturn:
    """Ends the process at once.

    After Ctrl-C a call may still wait in a thread of its own, and nothing is left to wait for. After an import that was refused
    early the transport still lets go of what it did not send: of 12 imports with a bad token Python's own way out, which such a
    thread does not survive, printed a stack of Rust's in 1.
    """
    with suppress(OSError):  # somebody who read stderr has left
        sys.stderr.flush()
    os._exit(code)
