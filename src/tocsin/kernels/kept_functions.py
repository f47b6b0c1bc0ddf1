"""Compiled functions on disk (`tocsin.kept`), in the place of numba's own cache, which stops at a damaged file."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tocsin.kept import HASH, folder, read, write

log = logging.getLogger(__name__)
ENDING = ".kernel"


class KeptFunction:
    """The compiled forms of one function, in the place of numba's cache of a dispatcher."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._code = function.__code__.co_code

    @property
    def cache_path(self) -> str | None:
        """The directory, for numba's statistics."""
        return None if folder() is None else str(folder())

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled form for a signature, or None where none is kept that can be used."""
        target.refresh()
        content = read(self._file(signature, target.codegen()))
        if content is None:
            return None
        from numba.core.compiler import CompileResult

        try:
            return CompileResult._rebuild(target, *pickle.loads(content))  # type: ignore[no-untyped-call]
        except Exception as problem:  # of another numba or LLVM than its name says: compiling again is always right
            log.debug("a kept kernel does not load: %r", problem)
            return None

    def save_overload(self, signature: Any, made: Any) -> None:
        """Keep a compiled form."""
        file = self._file(signature, made.codegen)
        if file is None or made.library.has_dynamic_globals or any(not each.can_cache for each in made.lifted):
            return
        from numba.core.serialize import dumps

        write(file, dumps(made._reduce()))  # type: ignore[no-untyped-call]

    def _file(self, signature: Any, codegen: Any) -> Path | None:
        place = folder()
        key = repr((signature, codegen.magic_tuple())).encode() + self._code
        return None if place is None else place / f"{self._name}.{HASH(key).hexdigest()[:32]}{ENDING}"


def has(module: str) -> bool:
    """Whether compiled functions of a module are kept."""
    place = folder()
    return place is not None and any(place.glob(f"{module}.*{ENDING}"))
