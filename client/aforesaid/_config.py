"""Where the service is and who calls it: a flag before the environment before the default, read once, then frozen.

Opens no connection and reads no file. `SETTINGS` declares each setting once; the command line's flags and its help come from there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from aforesaid._errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: the name of its field in Config, its flag on the command line, its variable in the environment."""

    name: str
    flag: str
    variable: str
    default: str
    placeholder: str
    help: str
    kind: type[str | float] = str


SETTINGS = (
    Setting("url", "--url", "AFORESAID_URL", "http://127.0.0.1:8787", "URL", "Where the service listens."),
    Setting("agent_id", "--as", "AFORESAID_AGENT_ID", "", "AGENT_ID", "Call as this agent and not as the user."),
    Setting("timeout", "--timeout", "AFORESAID_TIMEOUT", "60", "SECONDS", "How long one call may take.", float),
)


@dataclass(frozen=True, slots=True)
class Config:
    """What every call needs to know. `url` ends without a slash; `agent_id` empty for a user or service; `timeout` in seconds."""

    url: str
    agent_id: str
    timeout: float

    @classmethod
    def read(cls, given: Mapping[str, str | float | None] | None = None, environment: Mapping[str, str] | None = None) -> Config:
        """Takes each setting from `given` (by field name; None is not given), else from the environment, else its default.

        An empty variable counts as not set. Raises InvalidArgument that names the flag and the variable.
        """
        given = given or {}
        environment = os.environ if environment is None else environment
        url, agent_id, timeout = (_value(setting, given, environment) for setting in SETTINGS)
        return cls(url=_checked_url(url), agent_id=_checked_agent(agent_id), timeout=_checked_timeout(timeout))

    @property
    def is_local(self) -> bool:
        """Tells whether the service is on this machine."""
        host = urlsplit(self.url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False


def _value(setting: Setting, given: Mapping[str, str | float | None], environment: Mapping[str, str]) -> str:
    value = given.get(setting.name)
    if value is not None:
        return str(value)
    return environment.get(setting.variable, "") or setting.default


def _wrong(name: str, problem: str) -> InvalidArgument:
    setting = next(setting for setting in SETTINGS if setting.name == name)
    return InvalidArgument.of(name, f"{problem} ({setting.flag} or {setting.variable})")


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise _wrong("url", f"{url}: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _wrong("url", f"must begin with http:// or https:// and name a host: {url}")
    if parts.query or parts.fragment:
        raise _wrong("url", f"must hold neither ? nor #: {url}")
    return SplitResult(parts.scheme, parts.netloc, parts.path.rstrip("/"), "", "").geturl()


def _checked_agent(agent_id: str) -> str:
    try:
        agent_id.encode()
    except UnicodeEncodeError:
        raise _wrong("agent_id", f"must be UTF-8: {agent_id!r}") from None
    return agent_id


def _checked_timeout(timeout: str) -> float:
    try:
        seconds = float(timeout)
    except ValueError:
        raise _wrong("timeout", f"must be a number of seconds: {timeout}") from None
    # Connect carries milliseconds in ten digits.
    if not 0.001 <= seconds <= 9_999_999:
        raise _wrong("timeout", f"must be from 0.001 to 9999999 seconds: {timeout}")
    return seconds
