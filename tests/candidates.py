"""A limit on what the reference evaluator enumerates, for random queries that multiply beyond any test's time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tocsin.reference.matches import Candidate, Evaluation


class TooManyCandidatesError(Exception):
    """The reference would look at more than a test has time and memory for."""


@contextmanager
def few_candidates(most: int = 1_000_000) -> Iterator[None]:
    """Stop the reference where it would try to join so many pairs of candidates.

    It does before any condition is asked: a handful of events have millions in an iteration of conjunctions of
    iterations, of which few, or none, are matches.
    """
    left, product = most, Evaluation._product

    def counted(self: Evaluation, lefts: list[Candidate], rights: list[Candidate], follows: Any) -> list[Candidate]:
        nonlocal left
        left -= len(lefts) * len(rights)
        if left < 0:
            raise TooManyCandidatesError
        return product(self, lefts, rights, follows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Evaluation, "_product", counted)
        yield
