"""Settings: what is given before the environment before the default, checked once."""

from __future__ import annotations

import dataclasses

import pytest

from aforesaid import Config, InvalidArgument
from aforesaid._config import SETTINGS


def test_defaults() -> None:
    config = Config.read({}, {})
    assert (config.url, config.agent_id, config.timeout) == ("http://127.0.0.1:8787", "", 60.0)


def test_every_setting_is_a_field_and_every_field_a_setting() -> None:
    assert [setting.name for setting in SETTINGS] == [field.name for field in dataclasses.fields(Config)]


@pytest.mark.parametrize(
    ("setting", "given", "variable", "from_given", "from_variable"),
    [
        ("url", "https://a.example/x/", "http://b.example", "https://a.example/x", "http://b.example"),
        ("agent_id", "ada", "bob", "ada", "bob"),
        ("timeout", 1.5, "2", 1.5, 2.0),
    ],
)
def test_given_before_environment_before_default(
    setting: str, given: str | float, variable: str, from_given: str | float, from_variable: str | float
) -> None:
    environment = {f"AFORESAID_{setting.upper()}": variable}
    assert getattr(Config.read({setting: given}, environment), setting) == from_given
    assert getattr(Config.read({setting: None}, environment), setting) == from_variable
    assert getattr(Config.read({}, {f"AFORESAID_{setting.upper()}": ""}), setting) == getattr(Config.read({}, {}), setting)


def test_an_empty_flag_is_given() -> None:
    assert Config.read({"agent_id": ""}, {"AFORESAID_AGENT_ID": "bob"}).agent_id == ""


def test_the_environment_is_read_where_none_is_handed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFORESAID_AGENT_ID", "from the environment")
    assert Config.read().agent_id == "from the environment"


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config.read({}, {}).url = "http://x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("url", "127.0.0.1:8787"),
        ("url", "ftp://127.0.0.1"),
        ("url", "http://"),
        ("url", "http://[::1"),
        ("url", "http://127.0.0.1:99999"),
        ("url", "http://x/?a=1"),
        ("url", "http://x/#a"),
        ("agent_id", "a\udc80"),
        ("timeout", "soon"),
        ("timeout", "0"),
        ("timeout", "0.0001"),
        ("timeout", "-1"),
        ("timeout", "nan"),
        ("timeout", "inf"),
    ],
)
def test_a_wrong_value_is_told_with_flag_and_variable(setting: str, value: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Config.read({setting: value}, {})
    flag, variable = next((each.flag, each.variable) for each in SETTINGS if each.name == setting)
    assert caught.value.violations[0].field == setting
    assert caught.value.message.startswith(f"{setting}: ")
    assert caught.value.message.endswith(f"({flag} or {variable})")


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8787", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:1", True),
        ("http://localhost", True),
        ("http://a.localhost:80", True),
        ("http://LOCALHOST", True),
        ("http://10.0.0.1", False),
        ("http://localhost.example", False),
        ("https://aforesaid.example", False),
    ],
)
def test_which_addresses_are_this_machine(url: str, local: bool) -> None:
    assert Config.read({"url": url}, {}).is_local is local
