"""What workers keep of users' states: data comes back as it was; code is neither stored nor loaded."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import importlib
import os
import pickle
import struct
import subprocess
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import pytz
from hypothesis import given
from hypothesis import strategies as st
from tests.acer.definitions import Row
from tests.acer.support import Event, named
from tests.acer.test_shards import FAR, Shard, table

from tocsin import errors
from tocsin.acer.clock import Clock
from tocsin.acer.events import _made
from tocsin.acer.fast import Fold
from tocsin.acer.stored import NAMES, NotPlainError, _called, array, classes_of, dumped, loaded
from tocsin.acer.stream import Remembered
from tocsin.acer.windows import Window
from tocsin.engines.stream.store import RowStore, State

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.datetimes(timezones=st.none() | st.sampled_from([dt.UTC, ZoneInfo("Europe/Rome")]))
    | st.dates()
    | st.timedeltas()
    | st.uuids()
    | st.builds(lambda ts, x: Event((ts, "p", x)), st.integers(), st.integers())
)
STATES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(deque, st.lists(inner, max_size=3))
        | st.builds(OrderedDict, st.dictionaries(st.integers(), inner, max_size=3))
    ),
    max_leaves=8,
)


@given(STATES)
def test_plain_states_come_back(state: Any) -> None:
    assert loaded(dumped(state)) == state


def test_collections_arrays_and_windows_come_back() -> None:
    counts: defaultdict[str, list[int]] = defaultdict(list)
    counts["a"].append(1)
    values = [counts, Counter("aab"), {1, 2}, frozenset({3}), np.float64(1.5), Window(("p",), 0, 9), Fraction(1, 3)]
    assert loaded(dumped(values)) == values
    assert loaded(dumped(np.arange(3))).tolist() == [0, 1, 2]
    assert loaded(dumped((Decimal("1.10"), UUID(int=7)))) == (Decimal("1.10"), UUID(int=7))


# --- classes of functions ---------------------------------------------------------------------------


class Level(enum.Enum):
    LOW, HIGH = 0, 1


class Last(NamedTuple):
    level: Level
    time: int


@dataclass
class Seen:
    last: Last | None = None
    count: int = 0


class Plain:
    def __init__(self) -> None:
        self.times: list[int] = []


def fresh() -> Plain:
    return Plain()


def annotated(state: Seen, event: Any) -> tuple[Seen, list[Any]]:
    return replace(state or seen()(), count=1), []


def seen() -> type:
    return Seen


def calling(state: Any, event: Any) -> Any:
    state = state or fresh()
    state.times.append(event.ts)
    return state, [(str(state.times),)]


def test_a_function_may_keep_objects_of_classes_that_it_is_written_with() -> None:
    assert set(classes_of(annotated)) == {Seen, Last, Level}
    assert classes_of(calling) == (Plain,)
    assert classes_of(functools.partial(calling, None)) == (Plain,)
    state = Seen(Last(Level.HIGH, 5), 2)
    assert loaded(dumped(state, classes_of(annotated)), classes_of(annotated)) == state


def test_classes_that_no_module_holds_come_back() -> None:
    """As those of a notebook, which workers know by value."""

    @dataclass
    class Local:
        n: int

    def count(state: Any, event: Any) -> Any:
        return Local(1), []

    assert loaded(dumped(Local(3), classes_of(count)), classes_of(count)) == Local(3)


def test_classes_of_other_modules_are_not_taken() -> None:
    def run(state: Any, event: Any) -> Any:
        return subprocess.Popen, Path, []

    assert classes_of(run) == ()


def shard(function: Any, *classes: type) -> Shard:
    made = Shard(Fold(named(function, "state", "event")), 0)
    made.step = replace(made.step, classes=classes)
    return made


def test_states_of_own_classes_go_from_batch_to_batch() -> None:
    batches = [[Row(1, "p", 0)], [Row(2, "p", 0)], [Row(FAR, "end", 0)]]
    told = shard(calling, *classes_of(calling)).told(batches)
    assert [row[3] for batch in told for row in batch[:-1] if row[0] == "p"] == ["[1]", "[1, 2]"]


def test_a_state_of_another_class_is_refused_where_it_is_made() -> None:
    with pytest.raises(errors.UserFunctionError, match=r"key 'p' cannot be stored.*test_stored\.Plain` is not plain"):
        shard(calling).told([[Row(1, "p", 0)], [Row(2, "q", 0)]])


# --- what is planted --------------------------------------------------------------------------------


class Planted:
    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


PLANTED = [
    lambda trace: Planted(os.mkdir, trace),
    lambda trace: Planted(eval, f"__import__('os').mkdir({trace!r})"),
    lambda trace: Planted(getattr, "", "join"),
    lambda trace: Planted(functools.partial, os.mkdir, trace),
    lambda trace: Planted(subprocess.Popen, ["mkdir", trace]),
    lambda trace: {(1, 0): ("p", 0, 1, False, b"")},
    lambda trace: {(1, 0): Remembered(("p",), 0, 1, False, pickle.dumps(Planted(os.mkdir, trace)))},
]


@pytest.mark.parametrize("made", PLANTED)
def test_a_planted_state_is_refused_before_it_runs(made: Any, tmp_path: Path) -> None:
    one = shard(calling, *classes_of(calling))
    store = RowStore(State.begin(1))
    one.step.run(store, store.clocks.advanced([(1,)], [0]), [table([Row(1, "p", 0)])])
    store.memory = pickle.dumps(made(str(tmp_path / "ran")))
    with pytest.raises(errors.StateMismatchError, match="what your functions remember"):
        one.step.run(store, store.clocks.advanced([(2,)], [0]), [table([Row(2, "p", 0)])])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("size", [1, 10, -1])
def test_a_damaged_state_is_refused_by_name(size: int) -> None:
    one = shard(calling, *classes_of(calling))
    store = RowStore(State.begin(1))
    one.step.run(store, store.clocks.advanced([(1,)], [0]), [table([Row(1, "p", 0)])])
    store.memory = store.memory[:size]
    with pytest.raises(errors.StateMismatchError, match="what your functions remember cannot be read"):
        one.step.run(store, store.clocks.advanced([(2,)], [0]), [table([Row(2, "p", 0)])])


def test_functions_are_not_stored() -> None:
    for value in (print, len, os.mkdir, lambda: 0, functools.partial(print)):
        with pytest.raises(NotPlainError):
            dumped([value])


# --- what may be changed ----------------------------------------------------------------------------


def named_as(module: str, name: str) -> bytes:
    """The instruction that puts a named object on the stack."""
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


CHANGED = b"N}X\x07\x00\x00\x00plantedK\x01s\x86b."  # sets an attribute of what is on the stack


@pytest.mark.parametrize(
    ("module", "name", "owner"),
    [
        ("tocsin.acer.clock", "Clock", Clock),
        ("tocsin.acer.events", "_made", _made),
        ("tocsin.acer.stream", "Remembered", Remembered),
        ("fractions", "Fraction", Fraction),
        ("collections", "Counter", Counter),
    ],
)
def test_a_pickle_cannot_change_a_class_or_a_function(module: str, name: str, owner: Any) -> None:
    with pytest.raises(NotPlainError):
        loaded(b"\x80\x04" + named_as(module, name) + CHANGED)
    assert not hasattr(owner, "planted")


def test_a_pickle_cannot_change_a_class_of_the_users() -> None:
    """The name of a class stands for an object of it, never for the class."""
    classes = classes_of(annotated)
    module, name = _called(Seen).rsplit(".", 1)
    label = _called(Seen).encode()
    text = b"X" + struct.pack("<I", len(label)) + label
    made = loaded(b"\x80\x04" + named_as("tocsin.acer.stored", "called") + text + b"\x85R" + CHANGED, classes)
    assert vars(made) == {"last": None, "count": 0, "planted": 1}
    assert not hasattr(Seen, "planted")
    with pytest.raises(NotPlainError, match="is not plain data"):
        loaded(b"\x80\x04" + named_as(module, name) + CHANGED, classes)


@pytest.mark.parametrize("shared", [Level.HIGH, pytz.timezone("Europe/Rome"), pytz.utc])
def test_a_pickle_cannot_change_an_object_that_others_share(shared: Any) -> None:
    before = dict(vars(shared))
    written = dumped(shared, [Level])
    assert loaded(written, [Level]) is shared
    with pytest.raises(NotPlainError, match="are not plain data"):
        loaded(written[:-1] + CHANGED, [Level])
    assert vars(shared) == before


def test_names_that_pickles_may_hold_are_of_types_that_nobody_can_change() -> None:
    for module, name in NAMES - {("pytz", "_UTC"), ("pytz", "_p")}:
        found = getattr(importlib.import_module(module), name)
        if isinstance(found, type):
            with pytest.raises(TypeError, match="cannot set"):
                setattr(found, "planted", 1)  # noqa: B010


def test_a_type_of_numpy_cannot_make_pointers_of_bytes() -> None:
    """A type says by a flag whether its values are objects; without the flag their addresses are read from bytes."""
    make, given, state = np.dtype([("x", "O")]).__reduce__()
    lying = Stateful(make, given, (*state[:-1], 0))
    make, given, _ = np.zeros(1, "V8").__reduce__()
    forged = Stateful(make, given, (1, (1,), lying, False, b"A" * 8))
    for written in (pickle.dumps(lying), pickle.dumps(forged)):
        with pytest.raises(NotPlainError):
            loaded(written)
    for kind in ("O", [("x", "O")], [("x", [("y", "O", (2,))])], "T"):
        with pytest.raises((NotPlainError, TypeError)):
            array(kind, (1,), b"A" * 64)


class Stateful:
    def __init__(self, *made: Any) -> None:
        self.made = made

    def __reduce__(self) -> Any:
        return self.made


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([]),
        np.array(7),
        np.array(["ab", "c"]),
        np.array(["2020-01-01", "NaT"], "M8[ns]"),
        np.array([(1, 2.5)], np.dtype([("a", "i1"), ("b", "f8")], align=True)),
        np.array([{"a": 1}, None], object),
        np.array([[[1], [2]]], object),
    ],
    ids=lambda value: f"{value.dtype}{value.shape}",
)
def test_arrays_come_back(value: Any) -> None:
    back = loaded(dumped(value))
    assert back.dtype == value.dtype
    assert back.shape == value.shape
    assert back.tolist() == value.tolist()
    assert back.flags.writeable


@pytest.mark.parametrize(
    "value", [np.int8(1), np.bool_(True), np.datetime64("2020-01-01"), np.str_("ab"), np.float32(2)]
)
def test_values_of_numpy_come_back(value: Any) -> None:
    back = loaded(dumped(value))
    assert back == value
    assert type(back) is type(value)


class Many(enum.Flag):
    ONE, TWO = 1, 2


class Chosen:
    def __new__(cls, *, size: int) -> Chosen:
        made = super().__new__(cls)
        made.size = size
        return made

    size: int

    def __getnewargs_ex__(self) -> Any:
        return (), {"size": self.size}


class Bag(dict[str, int]):
    pass


def test_objects_of_many_kinds_of_classes_come_back() -> None:
    bag = Bag(a=1)
    bag.loop = bag  # type: ignore[attr-defined]
    classes = [Many, Chosen, Bag]
    many, chosen, back = loaded(dumped([Many.ONE | Many.TWO, Chosen(size=3), bag], classes), classes)
    assert (many, chosen.size, back) == (Many.ONE | Many.TWO, 3, bag)
    assert back.loop is back


def test_a_class_is_not_plain_data() -> None:
    with pytest.raises(NotPlainError, match="Seen` is not plain data"):
        dumped({"kind": Seen}, [Seen])
