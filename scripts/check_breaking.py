"""Checks that proto/ breaks no caller of what stood before: `buf breaking` against earlier commits of this repository.

Compared with: the latest release tag (`v*`), the place where this branch left origin/main, and the state before the last change of
proto/ (HEAD, while the change is not committed). Each that exists and holds a proto/ is asked; a shallow clone may have none. A
break that is meant is written into buf.yaml. Outside a repository it fails only where CI is set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Returns 0 when nothing breaks, buf's exit code when something does."""
    if not git("rev-parse", "--git-dir"):
        print("check_breaking: git does not read this folder as a repository", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    candidates = dict.fromkeys((released(), forked(), before_last_change()))
    commits = [commit for commit in candidates if commit and holds_proto(commit)]
    if not commits:
        print("check_breaking: no earlier commit holds a proto/ to compare with")
    return max((against(commit) for commit in commits), default=0)


def released() -> str:
    """Returns the commit of the latest release that this one contains, empty if there is none."""
    tag = git("describe", "--tags", "--abbrev=0", "--match", "v*")
    return git("rev-parse", f"{tag}^{{commit}}") if tag else ""


def forked() -> str:
    """Returns the last commit shared with origin/main, empty where there is no such branch."""
    return git("merge-base", "HEAD", "origin/main")


def before_last_change() -> str:
    """Returns HEAD while proto/ differs from it, else the parent of the last commit that changed proto/; empty if there is none."""
    if git("status", "--porcelain", "--", "proto"):
        return git("rev-parse", "--verify", "HEAD")
    last = git("log", "-n", "1", "--format=%H", "--", "proto")
    return git("rev-parse", "--verify", f"{last}^") if last else ""


def holds_proto(commit: str) -> bool:
    """Tells whether there was a contract at that commit."""
    return bool(git("ls-tree", "-r", "--name-only", commit, "--", "proto"))


def against(commit: str) -> int:
    """Lays out the contract of a commit with today's buf.yaml and .proto-deps, and compares; returns buf's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", commit, "proto"], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        shutil.copy(ROOT / "buf.yaml", folder)
        shutil.copytree(ROOT / ".proto-deps", Path(folder) / ".proto-deps")
        print(f"check_breaking: against {commit[:12]}", flush=True)
        return subprocess.run(["buf", "breaking", "--against", folder], cwd=ROOT, check=False).returncode


def git(*arguments: str) -> str:
    """Returns what git prints, empty where it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
