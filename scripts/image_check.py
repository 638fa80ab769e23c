"""`make image-check`: builds the Dockerfile for real, without an engine, and runs what it built.

Debian's buildah builds it in a chroot, on a base that debootstrap makes: as root, on Debian, in some four minutes. Then, as the
image's own user: without TLS or a word that a proxy ends it, the service refuses to start; with a token, made by the image's
own command, it takes a turn and finds it; without one it refuses; its health check says that it lives. Leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.running_server import ROOT, wait_for

BASE, IMAGE = "localhost/aforesaid-base", "localhost/aforesaid"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
USER = "10001:10001"
CERTIFICATES = "/etc/ssl/certs"


class Failed(Exception):
    """The image does not do what it should; says what."""


class Buildah:
    """buildah with a store of its own, which goes with its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def command(self, *arguments: str) -> list[str]:
        """Returns the command line."""
        store = ["--root", f"{self._folder}/storage", "--runroot", f"{self._folder}/run", "--storage-driver", "vfs"]
        return ["buildah", *store, *arguments]

    def __call__(self, *arguments: str) -> str:
        """Runs it and returns what it said. Raises CalledProcessError."""
        return subprocess.run(self.command(*arguments), check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def run(self, container: str, out: Path, *command: str, env: Sequence[str] = ()) -> list[str]:
        """Returns the command line that runs a command in a container, as the image's user; `out` is /out there."""
        given = [word for pair in env for word in ("--env", pair)]
        return self.command(
            *("run", "--isolation", "chroot", "--user", USER, "--volume", f"{out}:/out"), *given, container, "--", *command
        )


def main() -> int:
    """Returns 0 if the image is as it should be, 1 if it is not, 2 where it cannot be built."""
    missing = [tool for tool in ("buildah", "debootstrap") if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        print(f"image-check: needs root{''.join(f', and {tool}' for tool in missing)}", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="aforesaid-image-"))
    try:
        check(Buildah(folder), folder)
    except Failed as error:
        print(f"image-check: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("image-check: the image builds, refuses, serves, finds and is healthy")
    return 0


def check(buildah: Buildah, folder: Path) -> None:
    """Builds the image and tries it. Raises Failed."""
    say("making a base")
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", "bookworm", f"{folder}/base"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    scratch = buildah("from", "scratch")
    buildah("add", scratch, f"{folder}/base", "/")
    buildah("commit", "--rm", scratch, BASE)
    say("building")
    # The machine's own certificates: a registry may be reached through a proxy that signs for it.
    buildah(
        *("build", "--isolation", "chroot", "--format", "docker", "--pull-never", "--build-arg", f"BASE={BASE}"),
        *("--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro", "--tag", IMAGE, str(ROOT)),
    )
    declared(json.loads(buildah("inspect", "--type", "image", IMAGE))["Docker"]["config"])
    out = folder / "out"
    out.mkdir(mode=0o700)
    os.chown(out, *map(int, USER.split(":")))
    say("running")
    tried(buildah, buildah("from", "--pull-never", IMAGE), out)


def declared(config: dict[str, object]) -> None:
    """Checks what the image says of itself."""
    expected = {
        "User": USER,
        "Volumes": {"/data": {}},
        "Entrypoint": ["aforesaid-server"],
        "Cmd": ["serve"],
        "StopSignal": "SIGTERM",
        "ExposedPorts": {"8787/tcp": {}, "8788/tcp": {}},
    }
    for name, value in expected.items():
        if config.get(name) != value:
            raise Failed(f"{name} is {config.get(name)} and not {value}")
    health = config.get("Healthcheck")
    if not isinstance(health, dict) or health.get("Test") != ["CMD", "aforesaid-server", "health"]:
        raise Failed(f"Healthcheck is {health}")


def tried(buildah: Buildah, container: str, out: Path) -> None:
    """Runs the image's commands as an operator would."""
    in_clear = ("AFORESAID_ALLOW_PLAINTEXT=true",)
    refused = subprocess.run(buildah.run(container, out, "aforesaid-server", "serve"), check=False, capture_output=True, text=True)
    if refused.returncode != 2 or "allow_plaintext" not in refused.stderr:
        raise Failed(f"without TLS it ends with {refused.returncode}: {refused.stderr}")
    token = subprocess.run(
        buildah.run(container, out, "aforesaid-server", "token", "new", "--user", "image", "--expires", "1d"),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()
    serve = ("aforesaid-server", "serve", "--ready-file", "/out/ready.json")
    log = out.with_name("log")
    with log.open("wb") as output:
        process = subprocess.Popen(buildah.run(container, out, *serve, env=in_clear), stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_for(out / "ready.json", process, log, 120)
        asked(token)
        subprocess.run(buildah.run(container, out, "aforesaid-server", "health", env=in_clear), check=True)
    finally:
        told = json.loads((out / "ready.json").read_text("utf-8")) if (out / "ready.json").exists() else {}
        os.kill(told.get("pid", process.pid), 15)
        ended = process.wait(60)
    if ended != 0:
        raise Failed(f"after SIGTERM it ended with {ended}: {log.read_text('utf-8', 'replace')[-2000:]}")


def asked(token: str) -> None:
    """Writes a turn and searches it, with the token and without."""
    said = {"agentId": "image", "conversationId": "c", "turns": [{"role": "user", "parts": [{"text": "canary"}]}]}
    call("agent.v1.ConversationService/AppendTurns", said, token)
    found = call("agent.v1.AgentService/SearchTranscripts", {"query": "canaries"}, token)
    if [hit["agentId"] for hit in found.get("matches", [])] != ["image"]:
        raise Failed(f"a turn that was written is not found: {found}")
    refused = call("agent.v1.AgentService/SearchTranscripts", {"query": "canaries"}, "")
    if refused.get("code") != "unauthenticated":
        raise Failed(f"without a token it answers {refused}")


def call(method: str, body: Mapping[str, object], token: str) -> dict[str, Any]:
    """Calls a method with curl, as the README does; returns the answer, an error included."""
    headers = ["-H", "Content-Type: application/json", *(["-H", f"Authorization: Bearer {token}"] if token else [])]
    answer = subprocess.run(
        ["curl", "-sS", f"http://127.0.0.1:8787/{method}", *headers, "-d", json.dumps(body)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    reply: dict[str, Any] = json.loads(answer)
    return reply


def say(what: str) -> None:
    """Tells what goes on."""
    print(f"image-check: {what} ...", flush=True)


if __name__ == "__main__":
    sys.exit(main())
