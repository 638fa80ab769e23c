"""The client alone: it works where nothing of the extra `server` is installed, and both clients call a service so."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.running_server import ROOT

# A program behind a finder that refuses what `pip install aforesaid` alone would not bring.
PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"not installed: {{name}}", name=name)

sys.meta_path.insert(0, Missing())
{body}
"""
BOTH = """
import asyncio, importlib, pkgutil
import aforesaid, aforesaid.cli, aforesaid.formats
for package in (aforesaid, aforesaid.cli, aforesaid.formats):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if module.name != "aforesaid.__main__":
            importlib.import_module(module.name)

async def awaited():
    async with aforesaid.AsyncClient(sys.argv[1], "") as client:
        return (await client.append("awaited", [], agent_id="light")).revision

with aforesaid.Client(sys.argv[1], "") as client:
    print(client.append("blocking", [], agent_id="light").revision, asyncio.run(awaited()))
"""


def distributions() -> set[str]:
    """The distributions that the client alone needs, by pyproject.toml, with what they need in turn."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found: set[str] = set()
    left = [Requirement(text) for text in project["dependencies"]]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        if name in found or not holds(requirement, {""}):
            continue
        found.add(name)
        left += [needed for needed in map(Requirement, requires(name) or ()) if holds(needed, requirement.extras or {""})]
    return found


def holds(requirement: Requirement, extras: set[str]) -> bool:
    """Tells whether a requirement holds on this machine."""
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


@pytest.fixture(scope="module")
def blocked() -> set[str]:
    """The names of all modules at the top that come from anything but the client's own dependencies."""
    own = distributions() | {"aforesaid"}
    others = {name for name, homes in packages_distributions().items() if not {canonicalize_name(home) for home in homes} & own}
    return (others | {"aforesaid_server"}) - set(sys.stdlib_module_names)


def test_what_is_blocked_is_the_servers(blocked: set[str]) -> None:
    assert blocked >= {"grpc", "sqlalchemy", "starlette", "tantivy", "uvicorn", "pydantic", "cryptography", "aforesaid_server"}
    assert not blocked & {"connectrpc", "pyqwest", "protobuf", "click", "aforesaid"}
    assert len(distributions()) <= 16, "the client is meant to be light"


def test_the_client_works_without_the_servers_dependencies(blocked: set[str], service_url: str) -> None:
    program = PROGRAM.format(blocked=blocked, body=BOTH)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, service_url], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[0] in {"0", "1"}
