"""The schemas that `check` is given: by event type, or one DataFrame or schema for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tocsin import errors
from tocsin.analysis.types import DataType

SCHEMA_HINT = "write `{'ts': 'timestamp', 'amount': 'double'}` for each event type."


def schemas_of(given: Any, types: Iterable[str], type_column: str) -> dict[str, Mapping[str, Any]]:
    """The attributes of each event type: told type by type, or by one DataFrame or schema for all."""
    from tocsin.physical.compat import is_dataframe, is_schema

    if is_dataframe(given) or is_schema(given):
        from tocsin.physical.inputs import require_type_column
        from tocsin.physical.spark_types import checked, types_in

        schema = checked(given, "the input")
        require_type_column(type_column, schema)
        return dict.fromkeys(types, types_in(schema))
    if not isinstance(given, Mapping):
        raise errors.InvalidInputError(
            f"`schemas` is a {type(given).__name__}, neither a DataFrame nor a mapping from event type to schema.",
            hint="write `{'Login': {'ts': 'timestamp', 'user': 'string'}}`, or pass one DataFrame with a type column.",
        )
    problems = errors.Problems()
    found: dict[str, Mapping[str, Any]] = {}
    for name, schema in given.items():
        with errors.collecting(problems):
            found[name] = _attributes(name, schema)
    errors.raise_all(problems)
    return found


def _attributes(name: Any, given: Any) -> Mapping[str, Any]:
    """The attributes of an event type, from whatever tells them."""
    from tocsin.physical.compat import is_dataframe, is_schema

    if not isinstance(name, str):
        raise errors.InvalidInputError(
            f"`schemas` has the key {name!r}, which is not the name of an event type.", hint=SCHEMA_HINT
        )
    if isinstance(given, Mapping):
        for attribute, kind in given.items():
            if not isinstance(attribute, str) or not isinstance(kind, str | DataType):
                raise errors.InvalidInputError(
                    f"The schema of `{name}` maps {attribute!r} to {kind!r}, not an attribute to the name of its type.",
                    hint=SCHEMA_HINT,
                )
        return given
    if is_dataframe(given) or is_schema(given):
        from tocsin.physical.spark_types import checked, types_in

        return types_in(checked(given, f"the input of `{name}`"))
    raise errors.InvalidInputError(
        f"A schema is a DataFrame, a StructType or a mapping from attribute to type, not a {type(given).__name__}.",
        hint=SCHEMA_HINT,
    )
