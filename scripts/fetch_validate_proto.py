"""Fetches buf/validate/validate.proto into .proto-deps, where buf.yaml and the acceptance suite look for it.

The file ships in no wheel and is not ours to commit; its Maven jar holds it. A file of another checksum is refused. Does nothing
where the file is there already.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARTIFACT = "build.buf:protovalidate:1.3.0"
JAR = "protovalidate-1.3.0.jar"
INSIDE = "buf/validate/validate.proto"
CHECKSUM = "817951eab518442950f1982be24b2c3154b214b40e42f49b915cbf5181e6ee80"
TARGET = ROOT / ".proto-deps" / INSIDE
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def main() -> int:
    """Returns 0 when the file is in its place, 1 after saying why it is not."""
    if TARGET.is_file() and checksum(TARGET.read_bytes()) == CHECKSUM:
        return 0
    maven = shutil.which("mvn")
    if maven is None:
        return failed(f"mvn is needed to fetch {ARTIFACT}: install Maven (on Debian the package maven)")
    print(f"fetching {INSIDE} of {ARTIFACT}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        command = [maven, "-B", "-q", "-Dstyle.color=never", COPY, f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}"]
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode != 0:
            return failed(f"mvn could not fetch {ARTIFACT}")
        with zipfile.ZipFile(Path(folder) / JAR) as jar:
            content = jar.read(INSIDE)
    if checksum(content) != CHECKSUM:
        return failed(f"{INSIDE} of {ARTIFACT} has checksum {checksum(content)}, not {CHECKSUM}")
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_bytes(content)
    return 0


def checksum(content: bytes) -> str:
    """Returns the SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def failed(why: str) -> int:
    """Says why on standard error; returns the exit code."""
    print(f"fetch_validate_proto: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
