"""The program `aforesaid-server`: the service, and what its owner does beside it."""

from __future__ import annotations

import sys
from importlib.metadata import version

import click

try:
    from aforesaid_server.commands.backup import backup, restore
    from aforesaid_server.commands.check import check
    from aforesaid_server.commands.grant import grant, grants
    from aforesaid_server.commands.health import health
    from aforesaid_server.commands.serve import serve
    from aforesaid_server.commands.token import token
except ModuleNotFoundError as error:
    # The client alone has this program too, without what it needs.
    sys.stderr.write(f"aforesaid-server: {error.name} is missing: install aforesaid[server]\n")
    sys.exit(2)


PROGRAM = "aforesaid-server"
# What a shell says of a program that Ctrl-C ended.
INTERRUPTED = 130


def _print_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"{PROGRAM} {version('aforesaid')}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version.")
def commands() -> None:
    """Keep and search what was said in the conversations of AI agents."""


commands.add_command(serve)
commands.add_command(check)
commands.add_command(health)
commands.add_command(backup)
commands.add_command(restore)
commands.add_command(token)
commands.add_command(grant)
commands.add_command(grants)


def main() -> None:
    """Is the program."""
    try:
        code = commands.main(prog_name=PROGRAM, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.UsageError as error:
        # One line, as for everything else that cannot be; click prints three.
        said = error.format_message()
        said = said[:1].lower() + said[1:].rstrip(".")
        click.echo(f"{PROGRAM}: {said}; try '{error.ctx.command_path if error.ctx else PROGRAM} --help'", err=True)
        code = error.exit_code
    except click.Abort:
        code = INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
