"""Times as people type them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import pytest

from aforesaid import InvalidArgument
from aforesaid.cli.when import read_when

NOW = datetime(2026, 3, 4, 10, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("30s", "2026-03-04T10:22:00+00:00"),
        ("30m", "2026-03-04T09:52:30+00:00"),
        ("12h", "2026-03-03T22:22:30+00:00"),
        ("3d", "2026-03-01T10:22:30+00:00"),
        ("2w", "2026-02-18T10:22:30+00:00"),
        ("0d", "2026-03-04T10:22:30+00:00"),
        ("2026-03-01", "2026-02-28T18:30:00+00:00"),
        ("2026-03-01T10:00", "2026-03-01T04:30:00+00:00"),
        ("2026-03-01 10:00:30.5", "2026-03-01T04:30:30.500000+00:00"),
        ("2026-03-01T10:00Z", "2026-03-01T10:00:00+00:00"),
        ("2026-03-01T10:00:00+02:00", "2026-03-01T08:00:00+00:00"),
    ],
)
def test_what_is_typed_means_a_time(typed: str, meant: str, zone: pytest.MonkeyPatch) -> None:
    zone.setenv("TZ", "XXX-05:30")
    time.tzset()
    assert read_when("since", typed, NOW).astimezone(UTC).isoformat() == meant


@pytest.mark.parametrize(
    "typed", ["", "3", "d", "-3d", "3 days", "3y", "1d12h", "2026-13-01", "10:00", "999999999w", "٣d", "0001-01-01T00:00+99:99"]
)
def test_what_means_none_is_refused_with_its_value(typed: str, zone: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgument, match=rf"^since: must be a duration such as 3d, .*: {re.escape(typed)}$"):
        read_when("since", typed, NOW)
