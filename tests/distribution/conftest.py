"""What the tests of the distribution share: the wheel of this checkout, and fresh environments to install it into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.running_server import ROOT

SECONDS = 600
# What pip and uv need to reach a registry; everything else of this environment must not matter.
_KEPT = ("PATH", "PIP_", "UV_", "SSL_", "HTTP", "http", "NO_PROXY", "no_proxy", "TMPDIR")


def empty_environment(home: Path, **more: str) -> dict[str, str]:
    """Returns the variables of a user who has set nothing, but for what reaches the registry."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    return {**kept, "HOME": str(home), "LANG": "C.UTF-8", **more}


def run(*command: str | Path, env: Mapping[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(
        [str(word) for word in command],
        env=dict(env),
        cwd=cwd or env["HOME"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def told(*command: str | Path, env: Mapping[str, str], cwd: Path | None = None) -> str:
    """Runs a command, which must end well; returns what it said."""
    ended = run(*command, env=env, cwd=cwd)
    assert ended.returncode == 0, f"{command}: {ended.stdout[-4000:]}{ended.stderr[-4000:]}"
    return ended.stdout


def has_uv() -> bool:
    """Tells whether uv is here; it installs what it has installed before in a second."""
    # A pyenv shim may be there without a uv behind it.
    return shutil.which("uv") is not None and subprocess.run(["uv", "--version"], capture_output=True, check=False).returncode == 0


def python_of(version: str) -> Path | None:
    """Returns an interpreter of a version, such as "3.12", that is on this machine."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        return Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python{version}")))
    return next((Path(one) for one in found if one and _works(one)), None)


def _works(python: str | Path) -> bool:
    """Tells whether an interpreter starts: pyenv's programs on the path do only where their version is chosen."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def install(venv: Path, python: Path, *what: str | Path, env: Mapping[str, str]) -> None:
    """Makes a virtual environment, if it is not there, and installs into it."""
    if has_uv():
        shared = {**env, "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache" / "uv")}
        if not venv.exists():
            told("uv", "venv", "-q", "--python", python, venv, env=shared)
        told("uv", "pip", "install", "-q", "--python", venv / "bin" / "python", *what, env=shared)
        return
    if not venv.exists():
        told(python, "-m", "venv", venv, env=env)
    told(venv / "bin" / "python", "-m", "pip", "install", "-q", *what, env=env)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    told(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, env=os.environ, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built
