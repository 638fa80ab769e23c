"""`make accept`: starts our server on free ports with an empty data folder and runs the acceptance suite of ../shared against it.

The arguments go to pytest, its exit code comes back. Without the suite it says so and succeeds; without validate.proto the gRPC
half is left out. Where CI is set both are failures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.fetch_validate_proto import TARGET as VALIDATE_PROTO
from scripts.running_server import ROOT, RunningServer, ServerNotReady, start

SHARED = Path(os.environ.get("AFORESAID_SHARED") or ROOT.parent / "shared")


def main(arguments: list[str]) -> int:
    """Returns pytest's exit code, or 1 where the server did not start or end well."""
    suite = SHARED / "acceptance"
    in_ci = bool(os.environ.get("CI"))
    if not (suite / "pytest.ini").is_file():
        print(f"accept: skipped, no acceptance suite at {suite}", file=sys.stderr)
        return 1 if in_ci else 0
    if not VALIDATE_PROTO.is_file():
        print(
            "accept: the gRPC checks are left out, .proto-deps has no validate.proto (`make proto` fetches it, with mvn)",
            file=sys.stderr,
        )
        if in_ci:
            return 1
    with tempfile.TemporaryDirectory(prefix="aforesaid-accept-") as folder:
        try:
            server = start(Path(folder) / "data", log=Path(folder) / "server.log")
        except ServerNotReady as error:
            print(f"accept: the server {error}", file=sys.stderr)
            return 1
        try:
            code = run_suite(suite, server, arguments)
        finally:
            ended = server.stop()
        if code != 0 or ended != 0:
            print(
                f"accept: pytest ended with {code}, the server with {ended}; the end of its log:\n{server.told()}", file=sys.stderr
            )
    return code or (1 if ended else 0)


def run_suite(suite: Path, server: RunningServer, arguments: list[str]) -> int:
    """Runs the suite under its own settings, not this project's."""
    grpc = [f"--grpc={server.grpc}", f"--proto={ROOT / 'proto'}"] if VALIDATE_PROTO.is_file() else []
    command = [sys.executable, "-m", "pytest", str(suite), "-c", str(suite / "pytest.ini"), f"--rootdir={suite}"]
    command += ["-p", "no:cacheprovider", f"--url={server.url}", *grpc, *arguments]
    # The suite's folder may be read-only.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
