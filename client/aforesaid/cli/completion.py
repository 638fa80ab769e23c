"""`aforesaid completion SHELL`: the script that completes commands, flags and their values in a shell."""

from __future__ import annotations

import click

# The shell sets it when it asks what could follow; the script names it.
VARIABLE = "_AFORESAID_COMPLETE"
PROGRAM = "aforesaid"
SHELLS = ("bash", "zsh", "fish")


@click.command(epilog="Exit code: 0, 2 on an error.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the completions for a shell.

    \b
    bash   echo 'eval "$(aforesaid completion bash)"' >> ~/.bashrc
    zsh    echo 'eval "$(aforesaid completion zsh)"' >> ~/.zshrc
    fish   aforesaid completion fish > ~/.config/fish/completions/aforesaid.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completions for {shell}")
    click.echo(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())
    return 0


def answer_shell(commands: click.Command, instruction: str) -> int:
    """Prints what could follow what is typed, as the script asks for it; returns the exit code."""
    from click.shell_completion import shell_complete

    return shell_complete(commands, {}, PROGRAM, VARIABLE, instruction)
