"""What people install: the wheel and what is in it, the client alone, the whole by pipx, and every Python that is promised."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
import zipfile
from email.parser import Parser
from importlib.metadata import version
from pathlib import Path

import pytest

from scripts.running_server import EXAMPLES, ROOT
from tests.distribution.conftest import empty_environment, has_uv, install, python_of, run, told

# Serves the examples on free ports, searches them over the command line and stops: in the environment that runs it.
SMOKE = """
import json, pathlib, signal, subprocess, sys, tempfile
scripts, examples = map(pathlib.Path, sys.argv[1:])
with tempfile.TemporaryDirectory() as folder:
    ready = pathlib.Path(folder) / "ready.json"
    flags = ["--data", f"{folder}/data", "--port=0", "--grpc-port=0", "--import", examples, "--ready-file", ready]
    served = subprocess.Popen([scripts / "aforesaid-server", "serve", *flags], stderr=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        for line in served.stdout:
            if ready.exists():
                break
        url = json.loads(ready.read_text())["url"]
        command = [scripts / "aforesaid", "search", "idempotency key", "--json", "--url", url]
        print(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    finally:
        served.send_signal(signal.SIGTERM)
        served.communicate()
    assert served.returncode == 0, served.returncode
"""
SERVER_ONLY = ("alembic", "grpcio", "psycopg", "pydantic", "sqlalchemy", "starlette", "tantivy", "uvicorn")


def names(requirements: list[str]) -> set[str]:
    """The bare names of requirements."""
    return {re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower() for requirement in requirements}


def test_the_wheel_holds_both_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        info = f"aforesaid-{version('aforesaid')}.dist-info"
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        programs = archive.read(f"{info}/entry_points.txt").decode()
    assert {name.split("/")[0] for name in held} == {"aforesaid", "aforesaid_server", info}
    assert {"aforesaid/py.typed", "aforesaid_server/py.typed", f"{info}/licenses/LICENSE"} <= held
    assert not [name for name in held if "__pycache__" in name]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert metadata["Requires-Python"] == declared["requires-python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert (
        programs.split()
        == "[console_scripts] aforesaid = aforesaid.cli:main aforesaid-server = aforesaid_server.__main__:main".split()
    )
    on_disk = {
        str(path.relative_to(ROOT / folder))
        for folder in ("client", "server")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path)
    }
    assert {name for name in held if not name.startswith(info)} == on_disk


def test_the_client_alone_is_light(wheel: Path, tmp_path: Path) -> None:
    env, venv = empty_environment(tmp_path), tmp_path / "venv"
    install(venv, Path(sys.executable), wheel, env=env)
    programs = venv / "bin"
    assert told(programs / "aforesaid", "--version", env=env) == f"aforesaid {version('aforesaid')}\n"
    listed = "import importlib.metadata as m, json; print(json.dumps([d.name.lower() for d in m.distributions()]))"
    assert set(json.loads(told(programs / "python", "-c", listed, env=env))).isdisjoint(SERVER_ONLY)
    told(programs / "python", "-c", "import aforesaid; aforesaid.Client; from aforesaid.formats import find_files", env=env)
    nobody = run(programs / "aforesaid", "search", "x", "--url", "http://127.0.0.1:9", env=env)
    assert (nobody.returncode, nobody.stdout) == (2, "")
    without = run(programs / "aforesaid-server", "serve", env=env)
    assert (without.returncode, without.stdout) == (2, "")
    assert without.stderr.startswith("aforesaid-server: ")
    assert without.stderr.endswith(": install aforesaid[server]\n")
    assert without.stderr.count("\n") == 1


def test_pipx_installs_the_whole(wheel: Path, tmp_path: Path) -> None:
    env = empty_environment(tmp_path, PIPX_HOME=str(tmp_path / "pipx"), PIPX_BIN_DIR=str(tmp_path / "bin"))
    if has_uv():  # the same packages, from its cache
        env["UV_CACHE_DIR"] = os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache" / "uv")
    backend = ["--backend", "uv" if has_uv() else "pip"]
    told(sys.executable, "-m", "pipx", "install", *backend, "--python", sys.executable, f"{wheel}[server]", env=env)
    for program in ("aforesaid", "aforesaid-server"):
        assert told(tmp_path / "bin" / program, "--version", env=env) == f"{program} {version('aforesaid')}\n"
    found = json.loads(told(sys.executable, "-c", SMOKE, tmp_path / "bin", EXAMPLES, env=env))
    assert found["matches"][0]["agentId"] == "shop-implementer"
    elsewhere = run(tmp_path / "bin" / "aforesaid-server", "token", "list", "--store", "postgresql://u:hunter2@h/d", env=env)
    assert (elsewhere.returncode, elsewhere.stdout) == (2, "")
    needed = "a store in PostgreSQL needs what the extra [postgresql] installs: pip install 'aforesaid[postgresql]'"
    assert elsewhere.stderr.startswith(f"aforesaid-server: {needed}")
    assert "hunter2" not in elsewhere.stderr


@pytest.mark.parametrize("python_version", ["3.11", "3.12", "3.13"])
def test_the_lock_and_the_wheel_serve_on(python_version: str, wheel: Path, tmp_path: Path) -> None:
    python = python_of(python_version)
    if python is None:
        # Not every machine has every Python, and none can be made by hand: a skip that is seen, in CI too.
        pytest.skip(f"no Python {python_version} on this machine")
    env, venv = empty_environment(tmp_path), tmp_path / "venv"
    install(venv, python, "--require-hashes", "-r", ROOT / "requirements.lock", env=env)
    install(venv, python, "--no-deps", wheel, env=env)
    is_it = "import sys; print(f'{sys.version_info.major}.{sys.version_info.minor}')"
    assert told(venv / "bin" / "python", "-c", is_it, env=env).strip() == python_version
    found = json.loads(told(venv / "bin" / "python", "-W", "error", "-c", SMOKE, venv / "bin", EXAMPLES, env=env))
    assert found["matches"][0]["agentId"] == "shop-implementer"


def test_the_classifiers_name_what_is_tried() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    assert [one.rsplit(" ", 1)[-1] for one in declared if re.search(r":: 3\.\d+$", one)] == ["3.11", "3.12", "3.13"]
