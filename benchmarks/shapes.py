"""What a workload asks for, in a form that every contestant can read: steps in order, a window, conditions.

`text_of` is the query that Tocsin gets; the others build their plans from the same `Shape`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One element: an event of `type` whose value is more than `above`; under NOT when `is_negated`."""

    variable: str
    type: str
    above: float | None = None
    is_negated: bool = False


@dataclass(frozen=True)
class Shape:
    """SEQ of the steps, strictly later one after the other, with end − start < window.

    Attributes
    ----------
    gap
        The value of each event is more than that of the event before it plus this; None: any.
    is_keyed
        All events of a match have one key.
    is_iteration
        The steps are copies of one; the query is ITER^m and returns arrays.
    """

    steps: tuple[Step, ...]
    window_us: int
    gap: float | None = None
    is_keyed: bool = False
    is_iteration: bool = False

    @property
    def positives(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if not step.is_negated)

    @property
    def columns(self) -> tuple[str, ...]:
        """What every contestant returns after `start` and `end`."""
        if self.is_iteration:
            return ("ids", "value")
        return (*(f"{step.variable}_id" for step in self.positives), "value", *(("key",) if self.is_keyed else ()))

    def negated_before(self, place: int) -> tuple[Step, ...]:
        """The negated steps between the positive step `place` and the one before it."""
        found: list[Step] = []
        passed = -1
        for step in self.steps:
            if step.is_negated:
                found.append(step)
            else:
                passed += 1
                if passed == place:
                    break
                found.clear()
        return tuple(found)


def text_of(shape: Shape) -> str:
    """The query in SASE+."""
    first, last = shape.positives[0], shape.positives[-1]
    conditions: list[str] = []
    if shape.is_iteration:
        name = first.variable
        pattern = f"{first.type}{{{len(shape.steps)}}} {name}"
        if first.above is not None:
            conditions.append(f"{name}.value > {first.above!r}")
        if shape.gap is not None:
            conditions.append(f"{name}[i].value > {name}[i-1].value{_plus(shape.gap)}")
        returns = f"{name}.id AS ids, {name}[last].value AS value"
    else:
        pattern = f"SEQ({', '.join(map(_element, shape.steps))})"
        conditions += [f"{step.variable}.value > {step.above!r}" for step in shape.steps if step.above is not None]
        if shape.gap is not None:
            conditions += [
                f"{after.variable}.value > {before.variable}.value{_plus(shape.gap)}"
                for before, after in zip(shape.positives, shape.positives[1:], strict=False)
            ]
        returns = ", ".join(f"{step.variable}.id AS {step.variable}_id" for step in shape.positives)
        returns += f", {last.variable}.value AS value"
        returns += f", {first.variable}.key AS key" if shape.is_keyed else ""
    return "\n".join(
        [
            f"PATTERN {pattern}",
            *(["PARTITION BY key"] if shape.is_keyed else []),
            *([f"WHERE {' AND '.join(conditions)}"] if conditions else []),
            f"WITHIN {duration(shape.window_us)}",
            f"RETURN {returns}",
        ]
    )


def duration(microseconds: int) -> str:
    for unit, size in (("MINUTES", 60_000_000), ("SECONDS", 1_000_000), ("MS", 1_000)):
        if microseconds % size == 0:
            return f"{microseconds // size} {unit}"
    return f"{microseconds} US"


def _element(step: Step) -> str:
    return f"{'NOT ' if step.is_negated else ''}{step.type} {step.variable}"


def _plus(gap: float) -> str:
    return f" + {gap!r}" if gap else ""
