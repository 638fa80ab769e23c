"""Settings: what is given before the environment before the file before the default, checked once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from aforesaid import Config, InvalidArgument
from aforesaid._config import SETTINGS, config_file
from scripts.running_server import ROOT


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
        ("retries", 1, "2", 1, 2),
        ("token", "a", "b", "a", "b"),
        ("token_in_clear", False, "1", False, True),
        ("ca", "a.pem", "b.pem", "a.pem", "b.pem"),
    ],
)
def test_given_before_environment_before_default(
    setting: str, given: str | float, variable: str, from_given: str | float, from_variable: str | float
) -> None:
    # A `ca` that is given is an error where nothing is encrypted.
    environment = {"AFORESAID_URL": "https://c.example", f"AFORESAID_{setting.upper()}": variable}
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
        ("retries", "-1"),
        ("retries", "101"),
        ("retries", "two"),
        ("retries", "٣"),
        ("token", "two words"),
        ("token_in_clear", "perhaps"),
        ("ca", "a\udc80"),
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


# The file


def filed(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    """Writes the file of settings; returns the environment in which it is found."""
    path = folder / "aforesaid" / "config.toml"
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return {"XDG_CONFIG_HOME": str(folder)}


def test_the_file_stands_behind_the_environment_and_before_the_default(tmp_path: Path) -> None:
    environment = filed(tmp_path, 'url = "https://a.example/"\nagent_id = "ada"\ntimeout = 5\nretries = 0\ntoken_in_clear = true\n')
    config = Config.read({}, environment)
    assert (config.url, config.agent_id, config.timeout, config.retries) == ("https://a.example", "ada", 5.0, 0)
    assert (config.token_in_clear, config.ca) == (True, "")
    assert Config.read({}, environment | {"AFORESAID_AGENT_ID": "bob"}).agent_id == "bob"
    assert Config.read({"timeout": 7}, environment).timeout == 7.0


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/home/a"}, "/x/aforesaid/config.toml"),
        ({"HOME": "/home/a"}, "/home/a/.config/aforesaid/config.toml"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/home/a"}, "/home/a/.config/aforesaid/config.toml"),
        ({"XDG_CONFIG_HOME": "", "HOME": "/home/a"}, "/home/a/.config/aforesaid/config.toml"),
        ({"XDG_CONFIG_HOME": "relative"}, None),
        ({}, None),
    ],
)
def test_where_the_file_is(environment: dict[str, str], path: str | None) -> None:
    assert config_file(environment) == (Path(path) if path else None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("uri = 'x'", "uri: is no setting; there are url, agent_id, timeout, retries, token, token_in_clear, ca (PATH)"),
        ("url = 'x'", "url: must begin with http:// or https:// and name a host: x (PATH)"),
        ("timeout = 'soon'", "timeout: must be a number of seconds: soon (PATH)"),
        ("timeout = 0", "timeout: must be from 0.001 to 9999999 seconds: 0 (PATH)"),
        ("retries = 1.5", "retries: must be a whole number from 0 to 100: 1.5 (PATH)"),
        ("token_in_clear = 'perhaps'", "token_in_clear: must be yes or no: perhaps (PATH)"),
        ("url = ['x']", "url: must be one value (PATH)"),
        ("[url]\nx = 1", "url: must be one value (PATH)"),
        ("url = ", "config: cannot be read: Invalid value (at end of document) (PATH)"),
        ("token = 'a b'", "token: must be visible ASCII without blanks (PATH)"),
    ],
)
def test_what_is_wrong_in_the_file_names_the_file(tmp_path: Path, text: str, told: str) -> None:
    environment = filed(tmp_path, text)
    with pytest.raises(InvalidArgument) as caught:
        Config.read({}, environment)
    assert caught.value.message == told.replace("PATH", str(config_file(environment)))


def test_no_file_and_no_folder_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "aforesaid").write_text("a file where the folder would be")
    for folder in (tmp_path, tmp_path / "none"):
        assert Config.read({}, {"XDG_CONFIG_HOME": str(folder)}) == Config.read({}, {})


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_with_a_token_must_be_its_owners_alone(tmp_path: Path, mode: int) -> None:
    environment = filed(tmp_path, 'token = "secret"', mode)
    with pytest.raises(InvalidArgument) as caught:
        Config.read({}, environment)
    assert caught.value.message == f"token: may be read by others: chmod 600 {config_file(environment)}"
    assert "secret" not in repr(caught.value.__context__)


def test_a_file_without_a_token_may_be_read_by_all(tmp_path: Path) -> None:
    assert Config.read({}, filed(tmp_path, "agent_id = 'ada'", 0o644)).agent_id == "ada"


@pytest.mark.parametrize(
    ("text", "given", "token"),
    [
        ('url = "https://a.example/"\ntoken = "t"', {}, "t"),
        ('url = "https://a.example/"\ntoken = "t"', {"url": "https://a.example"}, "t"),
        ('url = "https://a.example/"\ntoken = "t"', {"url": "https://b.example"}, ""),
        ('url = "https://a.example/"\ntoken = "t"', {"url": "http://127.0.0.1:8787"}, ""),
        ('url = "https://a.example/"\ntoken = "t"', {"url": "https://b.example", "token": "u"}, "u"),
        ('token = "t"', {}, "t"),
        ('token = "t"', {"url": "https://b.example"}, ""),
    ],
)
def test_a_token_of_the_file_goes_to_its_url_and_to_no_other(tmp_path: Path, text: str, given: dict[str, str], token: str) -> None:
    assert Config.read(given, filed(tmp_path, text)).token == token


@pytest.mark.parametrize(
    ("given", "truth"), [(True, True), (False, False), ("yes", True), ("No", False), ("1", True), ("0", False), ("TRUE", True)]
)
def test_what_counts_as_yes(given: bool | str, truth: bool) -> None:
    assert Config.read({"token_in_clear": given}, {}).token_in_clear is truth


def test_the_page_about_python_has_every_setting() -> None:
    rows = []
    for setting in SETTINGS:
        default = f"`{setting.default}` " if setting.default else ""
        rows.append(f"| `{setting.name}` | `{setting.flag}` | `{setting.variable}` | {default}| {setting.help} |")
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    assert [line for line in page.splitlines() if "AFORESAID_" in line and line.startswith("|")] == rows
