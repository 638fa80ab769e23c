"""Calls the service the way a person would: a curl command that is shown and then run. Without curl, urllib sends the same.

Knows Connect JSON only, and reads no more of an answer than that it is JSON.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

SECONDS = 30


class CallFailed(Exception):
    """The service refused the call or did not answer; says what was heard."""


def command(url: str, method: str, body: Mapping[str, Any], agent: str = "") -> list[str]:
    """Returns the curl command for a method such as `AgentService/SearchTranscripts`; `agent` is who asks, empty for the user."""
    caller = ["-H", f"X-Agent-Id: {agent}"] if agent else []
    content = ["-H", "Content-Type: application/json", "-d", json.dumps(body, ensure_ascii=False)]
    return ["curl", "-s", f"{url}/agent.v1.{method}", *caller, *content]


def shown(arguments: list[str]) -> str:
    """Returns the command as it can be pasted into a shell, a line for each option."""
    words = [shlex.quote(word) for word in arguments]
    lines = [" ".join(words[:3])]
    for option, value in zip(words[3::2], words[4::2], strict=True):
        lines.append(f"    {option} {value}")
    return " \\\n".join(lines)


def run(arguments: list[str]) -> dict[str, Any]:
    """Runs the command; returns the answer. Raises CallFailed."""
    text = by_curl(arguments) if shutil.which("curl") else by_urllib(arguments)
    try:
        answer: dict[str, Any] = json.loads(text)
    except ValueError:
        raise CallFailed(f"{arguments[2]} answered {text[:200]!r}") from None
    if "code" in answer:
        raise CallFailed(f"{arguments[2]} answered {answer['code']}: {answer.get('message', '')}")
    return answer


def by_curl(arguments: list[str]) -> str:
    """Returns what the command prints, straight from this machine's curl and past any proxy."""
    asked = [arguments[0], "--noproxy", "*", "--max-time", str(SECONDS), *arguments[1:]]
    done = subprocess.run(asked, capture_output=True, check=False)
    if done.returncode:
        raise CallFailed(f"curl ended with exit code {done.returncode} for {arguments[2]}")
    return done.stdout.decode("utf-8")


def by_urllib(arguments: list[str]) -> str:
    """Returns what the service answers to the same headers and body, errors included."""
    options = list(zip(arguments[3::2], arguments[4::2], strict=True))
    headers = dict(value.split(": ", 1) for option, value in options if option == "-H")
    body = next(value for option, value in options if option == "-d")
    request = urllib.request.Request(arguments[2], body.encode("utf-8"), headers, method="POST")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=SECONDS) as answer:
            content: bytes = answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            content = refused.read()
    except OSError as error:
        raise CallFailed(f"{arguments[2]}: {error}") from error
    return content.decode("utf-8")
