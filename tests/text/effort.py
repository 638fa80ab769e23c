"""How many examples the properties of the pure modules and of the engines try.

AFORESAID_EFFORT=20 tries twenty times as many, for a night; the usual counts are chosen so that the whole takes a minute or so on
two slow cores.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EFFORT = int(os.environ.get("AFORESAID_EFFORT", "1"))


def examples(count: int) -> settings:
    """Returns settings under which a property tries `count` examples, or EFFORT times as many."""
    return settings(max_examples=count * EFFORT, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
