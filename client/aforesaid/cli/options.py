"""The flags that every command has, made from the settings of `_config.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from aforesaid._config import SETTINGS

Command = TypeVar("Command", bound=Callable[..., Any])


def service_options(command: Command) -> Command:
    """Adds a flag for each setting of the client; the command gets them under the names that Config.read takes."""
    for setting in reversed(SETTINGS):
        default = f"; {setting.default}" if setting.default else ""
        text = f"{setting.help}  [{setting.variable}{default}]"
        command = click.option(setting.flag, setting.name, type=setting.kind, metavar=setting.placeholder, help=text)(command)
    return command
