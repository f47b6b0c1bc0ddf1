"""Spark's functions, under PySpark's names: Columns and plain values in, Columns out. A string is a literal here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from itertools import chain
from typing import Protocol

from tocsin.physical.sql.column import Case, Column, Operand, Plain, bigint_literal, identifier, literal, operand

# --- values ---------------------------------------------------------------------------------------


def lit(value: Plain) -> Column:
    """A literal; an integer is INT where it fits, else BIGINT."""
    return Column(literal(value))


def bigint(value: int) -> Column:
    """A literal BIGINT."""
    return Column(bigint_literal(value))


def col(name: str) -> Column:
    """The column of this name, whatever characters it has: a dot is one of them."""
    return Column(identifier(name))


def when(condition: Column, value: Operand) -> Case:
    """The value where the condition holds; more branches follow by `when` and `otherwise`."""
    return Case.of([(condition, value)])


def cases(branches: Iterable[tuple[Column, Operand]]) -> Case:
    """The value of the first condition that holds."""
    return Case.of(branches)


def struct(*columns: Column) -> Column:
    """A struct of Columns with aliases, which name its fields."""
    fields = ((lit(name), column) for column in columns for name in column.names)
    return _call("named_struct", *chain.from_iterable(fields))


# --- functions whose arguments are a list ---------------------------------------------------------


def _call(name: str, *arguments: Operand) -> Column:
    return Column(f"{name}({', '.join(map(operand, arguments))})")


def _of_none(name: str) -> Callable[[], Column]:
    return lambda: _call(name)


def _of_one(name: str) -> Callable[[Operand], Column]:
    return lambda value: _call(name, value)


def _of_two(name: str) -> Callable[[Operand, Operand], Column]:
    return lambda one, other: _call(name, one, other)


def _of_three(name: str) -> Callable[[Operand, Operand, Operand], Column]:
    return lambda first, second, third: _call(name, first, second, third)


class _OfAny(Protocol):
    def __call__(self, *values: Operand) -> Column: ...


def _of_any(name: str) -> _OfAny:
    return lambda *values: _call(name, *values)


input_file_name = _of_none("input_file_name")
row_number = _of_none("row_number")
spark_partition_id = _of_none("spark_partition_id")

abs = _of_one("abs")
array_compact = _of_one("array_compact")
array_distinct = _of_one("array_distinct")
array_max = _of_one("array_max")
array_min = _of_one("array_min")
array_size = _of_one("array_size")
ceil = _of_one("ceil")
explode = _of_one("explode")
flatten = _of_one("flatten")
floor = _of_one("floor")
hex = _of_one("hex")
hour = _of_one("hour")
inline = _of_one("inline")
isnan = _of_one("isnan")
length = _of_one("length")
lower = _of_one("lower")
minute = _of_one("minute")
negative = _of_one("negative")
second = _of_one("second")
posexplode_outer = _of_one("posexplode_outer")
raise_error = _of_one("raise_error")
rand = _of_one("rand")
rint = _of_one("rint")
signum = _of_one("signum")
sqrt = _of_one("sqrt")
timestamp_micros = _of_one("timestamp_micros")
trim = _of_one("trim")
unix_date = _of_one("unix_date")
unix_micros = _of_one("unix_micros")
upper = _of_one("upper")

array_repeat = _of_two("array_repeat")
get = _of_two("get")
from_utc_timestamp = _of_two("from_utc_timestamp")
pmod = _of_two("pmod")
pow = _of_two("pow")
round = _of_two("round")
sequence = _of_two("sequence")
shiftleft = _of_two("shiftleft")
shiftright = _of_two("shiftright")
try_add = _of_two("try_add")
try_divide = _of_two("try_divide")
try_mod = _of_two("try_mod")
try_multiply = _of_two("try_multiply")
try_subtract = _of_two("try_subtract")

lpad = _of_three("lpad")
regexp_replace = _of_three("regexp_replace")
slice = _of_three("slice")
substring_index = _of_three("substring_index")

array = _of_any("array")
arrays_zip = _of_any("arrays_zip")
coalesce = _of_any("coalesce")
concat = _of_any("concat")
concat_ws = _of_any("concat_ws")
greatest = _of_any("greatest")
least = _of_any("least")
substring = _of_any("substring")
xxhash64 = _of_any("xxhash64")

# --- aggregates -----------------------------------------------------------------------------------

collect_list = _of_one("collect_list")
collect_set = _of_one("collect_set")
count = _of_one("count")
count_if = _of_one("count_if")
hll_sketch_agg = _of_one("hll_sketch_agg")
hll_sketch_estimate = _of_one("hll_sketch_estimate")
hll_union_agg = _of_one("hll_union_agg")
max = _of_one("max")
max_by = _of_two("max_by")
min = _of_one("min")
min_by = _of_two("min_by")
stddev_pop = _of_one("stddev_pop")
sum = _of_one("sum")
try_sum = _of_one("try_sum")


def count_distinct(column: Column) -> Column:
    """How many different values there are."""
    return Column(f"count(DISTINCT {column.text})")


# --- functions with a form of their own -----------------------------------------------------------


def extract(field: str, source: Column) -> Column:
    """A field of a time or an interval: DAY, HOUR, …."""
    return Column(f"extract({field} FROM {source.text})")


def rtrim(column: Column, characters: str) -> Column:
    """The string without these characters at its end."""
    return _call("rtrim", characters, column)


def timestamp_add(unit: str, quantity: Column, time: Column) -> Column:
    """A time, moved: by so many MICROSECOND, DAY, …."""
    return Column(f"timestampadd({unit}, {quantity.text}, {time.text})")


def to_json(column: Column, options: Mapping[str, str] | None = None) -> Column:
    """The value as the text of JSON."""
    if not options:
        return _call("to_json", column)
    return _call("to_json", column, _call("map", *chain.from_iterable(options.items())))


# --- functions of functions -----------------------------------------------------------------------

_depth = ContextVar("_depth", default=0)


def _lambda(number: int, body: Callable[..., Column]) -> Column:
    """A lambda, whose parameters have names that no lambda around it has.

    One that is made before, and then stands inside, cannot mention them: there the same names do no harm.
    """
    depth = _depth.get()
    token = _depth.set(depth + number)
    try:
        parameters = [col(f"__tocsin_x{place}") for place in range(depth, depth + number)]
        names = ", ".join(one.text for one in parameters)
        return Column(f"{names if number == 1 else f'({names})'} -> {body(*parameters).text}")
    finally:
        _depth.reset(token)


def transform(array: Column, function: Callable[[Column], Column]) -> Column:
    """The value of a function for each element."""
    return _call("transform", array, _lambda(1, function))


def exists(array: Column, condition: Callable[[Column], Column]) -> Column:
    """Whether a condition holds for an element."""
    return _call("exists", array, _lambda(1, condition))


def zip_with(one: Column, other: Column, function: Callable[[Column, Column], Column]) -> Column:
    """The value of a function for each pair of elements."""
    return _call("zip_with", one, other, _lambda(2, function))


def aggregate(
    array: Column,
    start: Column,
    merge: Callable[[Column, Column], Column],
    finish: Callable[[Column], Column] | None = None,
) -> Column:
    """Merge each element into the value so far."""
    last = () if finish is None else (_lambda(1, finish),)
    return _call("aggregate", array, start, _lambda(2, merge), *last)
