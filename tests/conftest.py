"""Hypothesis profiles, and how many examples a property draws; the Spark session is in the conftest.py above."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, settings

# `fast` and `dev` on a laptop, `ci` for the slow tier, `debug` to see each example of a failure. Spark makes examples
# slow, and how slow differs from machine to machine, so that no deadline is right.
# `dev` draws the same examples every time, so that a failure is the fault of the change; `ci` looks for new ones.
settings.register_profile(
    "dev", max_examples=25, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fast", settings.get_profile("dev"))
settings.register_profile("ci", max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "debug",
    max_examples=25,
    deadline=None,
    verbosity=Verbosity.verbose,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
# `unshrunk` is `dev` for tools/mutate.py, which asks whether a test fails, not for the smallest example.
settings.register_profile("unshrunk", settings.get_profile("dev"), phases=[Phase.explicit, Phase.generate])
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
settings.load_profile(PROFILE)
# Properties name the number of examples that finds a subtle mistake. `make test` draws a share of it, the same ones
# every time, `make test-fast` a small share, and `make test-slow` a multiple; but no fewer than these.
SHARES = {"fast": (0.04, 4), "dev": (0.2, 10), "unshrunk": (0.2, 10), "ci": (3.0, 1)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


def pytest_collection_finish(session: pytest.Session) -> None:  # Hypothesis has marked its tests by now
    found = [item for item in session.items if item.get_closest_marker("hypothesis") and not is_named(item)]
    share, fewest = SHARES.get(PROFILE, (1.0, 1))
    for test in {item.obj for item in found}:
        own = test._hypothesis_internal_use_settings  # where Hypothesis looks when the test runs
        number = max(int(own.max_examples * share), min(own.max_examples, fewest))
        test._hypothesis_internal_use_settings = settings(own, max_examples=number)


def is_named(item: pytest.Item) -> bool:
    """Whether a test draws exactly as many examples as it says: on Spark they are few, and slow tests are campaigns."""
    return any(item.get_closest_marker(name) is not None for name in ("spark", "slow"))
