"""Checks, without asking a registry, that the two locks answer pyproject.toml and each other.

Every requirement of the project, and of each pinned package that is installed here, has a pin that satisfies it, with hashes; the
locks agree where both name a package; no lock names a host. Whether newer versions exist is the business of `make lock UPGRADE=1`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?P<rest>(?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)


def main() -> int:
    """Returns 0 when the locks are in order, 1 after saying what is not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    texts = {name: (ROOT / name).read_text("utf-8") for name in ("requirements.lock", "requirements-dev.lock")}
    run, dev = (pins(text) for text in texts.values())
    wrong = [f"{name} names a host" for name, text in texts.items() if "://" in text]
    wrong += [f"requirements.lock: {line}" for line in unanswered(wanted(project, "build"), run)]
    wrong += [f"requirements-dev.lock: {line}" for line in unanswered(wanted(project, "dev"), dev)]
    wrong += [
        f"{name} is {run[name]} in requirements.lock and {dev.get(name, 'missing')} in the other"
        for name in run
        if dev.get(name) != run[name]
    ]
    for line in wrong:
        print(f"check_locks: {line}", file=sys.stderr)
    if wrong:
        print("check_locks: run `make lock` (needs uv) and commit what it writes", file=sys.stderr)
    return 1 if wrong else 0


def pins(text: str) -> dict[str, str]:
    """Returns the pinned version of each package of a lock; one without a hash gets none."""
    return {
        canonicalize_name(pin["name"]): pin["version"] if "--hash=sha256:" in pin["rest"] else "without a hash"
        for pin in PIN.finditer(text)
    }


def wanted(project: Mapping[str, Any], group: str) -> list[Requirement]:
    """Returns what the project asks for with the extras of the server's image and a dependency group."""
    extras = project["project"]["optional-dependencies"]
    lines = [*project["project"]["dependencies"], *extras["server"], *extras["postgresql"], *of_group(project, group)]
    return [Requirement(line) for line in lines]


def of_group(project: Mapping[str, Any], group: str) -> Iterator[str]:
    """Yields the requirements of a group and of those that it includes."""
    for entry in project["dependency-groups"][group]:
        if isinstance(entry, str):
            yield entry
        else:
            yield from of_group(project, entry["include-group"])


def unanswered(requirements: list[Requirement], pinned: Mapping[str, str]) -> Iterator[str]:
    """Yields a line for each requirement that no pin satisfies, those of installed packages included."""
    seen: set[str] = set()
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        name = canonicalize_name(requirement.name)
        if name not in pinned:
            yield f"no pin for {requirement}"
        elif not requirement.specifier.contains(pinned[name], prereleases=True):
            yield f"{name} is {pinned[name]}, which does not satisfy {requirement}"
        else:
            waiting += asked_by(requirement)


def asked_by(requirement: Requirement) -> Iterator[Requirement]:
    """Yields what an installed package asks for on this machine with the extras of the requirement."""
    try:
        lines = distribution(requirement.name).requires or []
    except PackageNotFoundError:
        return
    for further in map(Requirement, lines):
        if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in (requirement.extras or {""})):
            yield further


if __name__ == "__main__":
    sys.exit(main())
