"""`make serve`: is the server, in the foreground, over a data folder with the examples or what IMPORT names.

Reads IMPORT, DATA, PORT and GRPC_PORT from the environment; every other setting is the server's own (`AFORESAID_*`), and so is what
is printed from then on. The log is for the person who looks at it, unless AFORESAID_LOG_FORMAT says another form.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from aforesaid_server.__main__ import commands
from scripts.running_server import EXAMPLES, ROOT

CANNOT_START = 2


class WrongSetting(ValueError):
    """A variable that cannot be; says which and why."""


def main() -> int:
    """Serves until it is told to stop, and exits as the server does; returns only where it cannot begin."""
    try:
        arguments = serve_arguments(os.environ)
    except WrongSetting as error:
        print(f"serve: {error}", file=sys.stderr)
        return CANNOT_START
    data, path = arguments[1], arguments[3]
    print(f"serving {path} from {data}; the first import of many transcripts takes a while", flush=True)
    os.environ.setdefault("AFORESAID_LOG_FORMAT", "text")
    # In this process: signals, the terminal's as well, are the server's without a go-between.
    return int(commands(["serve", *arguments], prog_name="aforesaid-server") or 0)


def serve_arguments(environment: Mapping[str, str]) -> list[str]:
    """Returns the server's flags. Raises WrongSetting."""
    given = environment.get("IMPORT", "")
    path = Path(given).expanduser().absolute() if given else EXAMPLES
    if not path.exists():
        raise WrongSetting(f"IMPORT={given} does not exist")
    # One's own transcripts and the examples do not mix.
    data = Path(environment.get("DATA") or ROOT / ".aforesaid" / ("own" if given else "examples")).expanduser().absolute()
    arguments = ["--data", str(data), "--import", str(path)]
    for variable, flag in (("PORT", "--port"), ("GRPC_PORT", "--grpc-port")):
        port = environment.get(variable, "")
        if port:
            arguments += [flag, _checked(variable, port)]
    return arguments


def _checked(variable: str, port: str) -> str:
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise WrongSetting(f"{variable}={port} is no port: a number from 0 to 65535, 0 for a free one")
    return port


if __name__ == "__main__":
    sys.exit(main())
