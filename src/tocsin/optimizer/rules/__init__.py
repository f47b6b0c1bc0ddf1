"""The rewrite rules, one file each, in the order they are tried."""

from __future__ import annotations

from tocsin.optimizer.rules.drop_idle_absences import drop_idle_absences
from tocsin.optimizer.rules.fold_constants import fold_constants
from tocsin.optimizer.rules.infer_window import infer_window
from tocsin.optimizer.rules.partition_by_keys import partition_by_keys
from tocsin.optimizer.rules.rule import NO_FACTS, Facts, Rule
from tocsin.optimizer.rules.share_keys import share_keys

__all__ = ["NO_FACTS", "RULES", "Facts", "Rule"]

RULES: tuple[Rule, ...] = (
    Rule("fold_constants", "constants in conditions are computed once", fold_constants),
    Rule("drop_idle_absences", "absences that no event can break are left out", drop_idle_absences),
    Rule("partition_by_keys", "an attribute that all events of a match share splits the stream", partition_by_keys),
    Rule("share_keys", "equalities that follow from others are tested as early as they can be", share_keys),
    Rule("infer_window", "distances between all events of a match make a window", infer_window),
)
