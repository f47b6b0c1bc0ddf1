"""The list of mutations fits the source: what `make test-power` breaks is there, once, and so are the tests."""

from __future__ import annotations

import pytest
from tools.mutate import MUTATIONS, ROOT, Mutation, place_of


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_can_be_applied(mutation: Mutation) -> None:
    assert place_of(mutation).is_file()
    for test in mutation.tests:
        file, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")
