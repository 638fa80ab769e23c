"""Where the service is and who calls it: a flag before the environment before the file before the default, read once, then frozen.

The file is aforesaid/config.toml in $XDG_CONFIG_HOME, or in ~/.config; it has the settings by name. Opens no connection. `SETTINGS`
declares each setting once; the command line's flags and its help come from there.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import SplitResult, urlsplit

from aforesaid._errors import InvalidArgument

Value: TypeAlias = str | float | bool

# What RFC 6750 allows a bearer token to be made of, and a little more; never a blank or a line's end.
_TOKEN = re.compile("[!-~]+")
_WITH_PASSWORD = re.compile(r"[^/]*//[^/?#]*@")
_TRUTHS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}
_FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# Connect carries milliseconds in ten digits.
_MAX_SECONDS = 9_999_999
_MAX_RETRIES = 100


def _url(text: str) -> str:
    if _WITH_PASSWORD.match(text):  # the address stands in messages of errors
        raise ValueError("must hold no user name and no password")
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"must begin with http:// or https:// and name a host: {text}")
    if parts.query or parts.fragment:
        raise ValueError(f"must hold neither ? nor #: {text}")
    return SplitResult(parts.scheme, parts.netloc, parts.path.rstrip("/"), "", "").geturl()


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"must be UTF-8: {text!r}") from None
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise ValueError(f"must be a number of seconds: {text}") from None
    if not 0.001 <= seconds <= _MAX_SECONDS:
        raise ValueError(f"must be from 0.001 to {_MAX_SECONDS} seconds: {text}")
    return seconds


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) > _MAX_RETRIES:
        raise ValueError(f"must be a whole number from 0 to {_MAX_RETRIES}: {text}")
    return int(text)


def _token(text: str) -> str:
    if text and not _TOKEN.fullmatch(text):
        raise ValueError("must be visible ASCII without blanks")  # and is not told
    return text


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTHS:
        raise ValueError(f"must be yes or no: {text}")
    return _TRUTHS[text.lower()]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its field in Config and key in the file, its flag on the command line, its variable in the environment.

    `check` makes the field's value of a text and raises ValueError that says what is wrong.
    """

    name: str
    flag: str
    variable: str
    default: str
    placeholder: str
    help: str
    check: Callable[[str], Any]


SETTINGS = (
    Setting("url", "--url", "AFORESAID_URL", "http://127.0.0.1:8787", "URL", "Where the service listens.", _url),
    Setting("agent_id", "--as", "AFORESAID_AGENT_ID", "", "AGENT_ID", "Call as this agent and not as the user.", _text),
    Setting("timeout", "--timeout", "AFORESAID_TIMEOUT", "60", "SECONDS", "How long one call may take.", _seconds),
    Setting("retries", "--retries", "AFORESAID_RETRIES", "3", "N", "How often a read that got no answer is tried again.", _count),
    Setting(
        "token", "--token", "AFORESAID_TOKEN", "", "TOKEN", "What proves who calls; flags are seen by all of a machine.", _token
    ),
    Setting(
        "token_in_clear",
        "--token-in-clear",
        "AFORESAID_TOKEN_IN_CLEAR",
        "",
        "yes|no",
        "Send the token even where others may read it on its way: over http:// to another machine.",
        _truth,
    ),
    Setting("ca", "--ca", "AFORESAID_CA", "", "FILE", "Trust the certificates of this PEM file, and not the system's.", _text),
)


@dataclass(frozen=True, slots=True)
class Config:
    """What every call needs to know.

    `url` ends without a slash; `agent_id` empty for a user or service; `timeout` in seconds, retries included; `ca` empty for the
    certificates of the system. The token is not shown.
    """

    url: str
    agent_id: str
    timeout: float
    retries: int
    token: str = field(repr=False)
    token_in_clear: bool
    ca: str

    @classmethod
    def read(cls, given: Mapping[str, Value | None] | None = None, environment: Mapping[str, str] | None = None) -> Config:
        """Takes each setting from `given` (by field name; None is not given), the environment, the file, or its default.

        An empty variable counts as not set. A token of the file goes to the file's url only. Raises InvalidArgument that names the
        flag and the variable, or the file, and for a given `ca` where nothing is encrypted.
        """
        texts = {name: str(value) for name, value in (given or {}).items() if value is not None}
        environment = os.environ if environment is None else environment
        values = filed = _filed(config_file(environment))
        for setting in SETTINGS:
            text = texts.get(setting.name, environment.get(setting.variable) or None)
            if text is not None:
                values = values | {setting.name: _checked(setting, text, f"{setting.flag} or {setting.variable}")}
            elif setting.name == "token" and values["url"] != filed["url"]:
                values = values | {"token": ""}
        config = cls(**values)
        config._check_secrecy()
        if texts.get("ca") and not config.url.startswith("https://"):
            # In the environment or the file it may be meant for another service.
            raise InvalidArgument.of("ca", f"is for https://, and the service is at {config.url}")
        return config

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

    def _check_secrecy(self) -> None:
        if self.token and not (self.token_in_clear or self.is_local or self.url.startswith("https://")):
            allowing = "--token-in-clear or AFORESAID_TOKEN_IN_CLEAR"
            problem = f"would travel in clear text to {self.url}: use https://, or allow it ({allowing})"
            raise InvalidArgument.of("token", problem)


def config_file(environment: Mapping[str, str]) -> Path | None:
    """Returns where the file of settings is, or would be; None where there is no home."""
    base = Path(environment.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():  # which the XDG specification wants ignored
        home = environment.get("HOME", "")
        if not home:
            return None
        base = Path(home, ".config")
    return base / "aforesaid" / "config.toml"


def _filed(path: Path | None) -> dict[str, Any]:
    """Returns what a file says, defaults where it says nothing."""
    said = _read(path) if path else {}
    names = [setting.name for setting in SETTINGS]
    for name, value in said.items():
        if name not in names:
            raise InvalidArgument.of(name, f"is no setting; there are {', '.join(names)} ({path})")
        if not isinstance(value, str | int | float):
            raise InvalidArgument.of(name, f"must be one value ({path})")
    return {setting.name: _checked(setting, str(said.get(setting.name, setting.default)), str(path)) for setting in SETTINGS}


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            import tomllib  # 20 ms and more, and most have no file

            mode = os.fstat(file.fileno()).st_mode
            said = tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        # The text of a TOML error names line and column, and at most one character or key.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidArgument.of("config", f"cannot be read: {reason} ({path})") from None
    if "token" in said and mode & _FOR_OTHERS:
        raise InvalidArgument.of("token", f"may be read by others: chmod 600 {path}")
    return said


def _checked(setting: Setting, text: str, origin: str) -> Any:
    try:
        return setting.check(text)
    except ValueError as problem:
        raise InvalidArgument.of(setting.name, f"{problem} ({origin})") from None
