"""The command line `aforesaid`: one small file per command, all of it on top of the client.

Results go to stdout, everything else to stderr; errors are lower case and begin with the program's name. What takes long to load is
loaded by the command that needs it: `aforesaid --help` takes 80 ms, most of it click; loading the wire takes three times that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from aforesaid._errors import AforesaidError, Unreachable
from aforesaid.cli.agents import agents
from aforesaid.cli.completion import VARIABLE, answer_shell, completion
from aforesaid.cli.conversations import conversations
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


for _command in (agents, completion, conversations, import_paths, reads, rpc, search, show):
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
        hint = "; `aforesaid-server serve` starts a service" if isinstance(error, Unreachable) else ""
        click.echo(error_line(error.message + hint), err=True)
        return FAILED
    return code or 0


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")


def main() -> None:
    """Is the program: runs the command of sys.argv and exits."""
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
    except (KeyboardInterrupt, click.Abort):
        click.echo(error_line("interrupted"), err=True)
        # A call may still wait in a thread of its own: nothing is left to wait for.
        os._exit(INTERRUPTED)
    sys.exit(code)
