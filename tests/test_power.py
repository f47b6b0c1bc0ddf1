"""What `make test-power` breaks is in the source, once, and properties draw their share of examples."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.mutate import MUTATIONS, ROOT, Mutation, places_of


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_can_be_applied(mutation: Mutation) -> None:
    assert all(place.is_file() for place in places_of(mutation))
    for test in mutation.tests:
        file, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")


DRAWN: list[int] = []


@settings(max_examples=100)
@given(st.integers())
def test_a_property_draws_its_share_of_examples(number: int) -> None:
    DRAWN.append(number)
    assert len(DRAWN) <= {"fast": 5, "dev": 20, "unshrunk": 20}.get(os.environ.get("HYPOTHESIS_PROFILE", "dev"), 300)
