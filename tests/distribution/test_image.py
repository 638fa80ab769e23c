"""The Dockerfile's own install steps, run in an empty environment. `make image-check` builds the whole of it, as root on
Debian.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from dockerfile_parse import DockerfileParser

from scripts.running_server import ROOT
from tests.conftest import missing
from tests.distribution.conftest import SECONDS, empty_environment, told

WHERE = "/opt/aforesaid"


def steps() -> list[tuple[str, str]]:
    """The instructions of the first stage, as (name, value)."""
    parsed = DockerfileParser(path=str(ROOT / "Dockerfile")).structure
    starts = [place for place, one in enumerate(parsed) if one["instruction"] == "FROM"]
    return [(one["instruction"], one["value"]) for one in parsed[starts[0] + 1 : starts[1]]]


def test_what_is_copied_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split("\n")
    taken = {line[1:] for line in ignored if line.startswith("!")}
    copied = {name for step, value in steps() if step == "COPY" for name in value.split()[:-1]}
    assert copied == taken


def test_its_install_steps_work_in_an_empty_environment(tmp_path: Path) -> None:
    """As the build does them: each COPY into a folder, each RUN by sh, with another place for what they make."""
    python = shutil.which("python3", path=str(Path(sys.base_prefix) / "bin"))
    if python is None or subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode:
        missing("no python3 that makes virtual environments, as Debian's python3-venv does")
    source, made, home = tmp_path / "src", tmp_path / "made", tmp_path / "home"
    home.mkdir()
    source.mkdir()
    env = empty_environment(home, PATH=f"{Path(python).parent}:/usr/bin:/bin")
    ran = 0
    for step, value in steps():
        if step == "COPY":
            *names, target = value.split()
            for name in names:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, source / target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copyfile(ROOT / name, source / name)
        elif step == "RUN":
            assert WHERE in value
            command = value.replace(WHERE, str(made)).replace("--no-cache-dir", "")
            done = subprocess.run(
                ["/bin/sh", "-c", command], cwd=source, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
            ran += 1
    assert ran == 2
    shutil.rmtree(source)  # nothing of the installed thing may need it
    assert told(made / "bin" / "aforesaid-server", "--version", env=env).startswith("aforesaid-server ")
    told(made / "bin" / "python", "-c", "import psycopg", env=env)  # it can serve a store in PostgreSQL
    where = "import aforesaid, aforesaid_server, json; print(json.dumps([aforesaid.__file__, aforesaid_server.__file__]))"
    assert all(path.startswith(str(made)) for path in json.loads(told(made / "bin" / "python", "-c", where, env=env)))
