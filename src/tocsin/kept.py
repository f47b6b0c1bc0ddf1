"""Files on disk for later processes of the same user: compiled functions, and the tables of parsers.

They are pickles, and some hold machine code: whoever can write these files runs code as whoever reads them. They are
kept in a directory of the user's own that is closed to others, and a file is read only when it belongs to the user,
nobody else may write it, and its content has the hash that it begins with. Any other file counts as missing: what it
held is made again and the file replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

log = logging.getLogger(__name__)
HASH = hashlib.sha256


def read(file: Path | None) -> bytes | None:
    """The content of a file that this user wrote whole; None for any other."""
    if file is None:
        return None
    try:
        # Neither a link is followed nor a pipe waited for.
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY)
        with os.fdopen(handle, "rb") as opened:
            _require(os.fstat(handle), stat.S_ISREG, 0o022)
            written = opened.read()
    except OSError as problem:
        if not isinstance(problem, FileNotFoundError):
            log.debug("a kept file is not used: %s", problem)
        return None
    size = HASH().digest_size
    content = written[size:]
    return content if written[:size] == _digest(file, content) else None


def write(file: Path, content: bytes) -> None:
    """Write a file that `read` accepts. Several workers may write the same at once: each its own, then one name."""
    try:
        handle, temporary = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as opened:
                opened.write(_digest(file, content) + content)
            os.replace(temporary, file)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as problem:
        log.warning("compiled code cannot be kept on disk: %s", problem)


@cache
def folder() -> Path | None:
    """The directory of kept files: this user's own and closed to others, or None where there is none."""
    for place in _places():
        try:
            return _private(place)
        except OSError as problem:
            log.info("compiled code is not kept in %s: %s", place, problem)
    log.warning(
        "No private directory for compiled code: every process compiles it anew. "
        "Set TOCSIN_CACHE_DIR to a directory that this user may write."
    )
    return None


def _places() -> Iterator[Path]:
    given = os.environ.get("TOCSIN_CACHE_DIR")
    if given:
        yield Path(given).absolute() / "kernels"
    with contextlib.suppress(ImportError):
        import platformdirs

        ours = platformdirs.user_cache_path("tocsin", appauthor=False) / "kernels"
        if ours.is_absolute():  # without a home directory it is "~/…"
            yield ours
    user = os.geteuid() if hasattr(os, "geteuid") else "user"
    yield Path(tempfile.gettempdir()) / f"tocsin-kernels-{user}"


def _private(place: Path) -> Path:
    """Make a directory, or take the one that is there if it is the user's own."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    if hasattr(os, "geteuid"):
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            found = os.fstat(handle)
            _require(found, stat.S_ISDIR, 0)
            if stat.S_IMODE(found.st_mode) != 0o700:
                os.fchmod(handle, 0o700)
        finally:
            os.close(handle)
    tempfile.TemporaryFile(dir=place).close()
    return place


def _require(found: os.stat_result, is_kind: Callable[[int], bool], open_to_others: int) -> None:
    """Raise unless a file is of a kind and this user's, and others have none of these permissions."""
    if not is_kind(found.st_mode):
        raise PermissionError("it is a file of another kind")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise PermissionError(f"it belongs to another user ({found.st_uid})")
    if hasattr(os, "geteuid") and found.st_mode & open_to_others:
        raise PermissionError("other users may write it")


def _digest(file: Path, content: bytes) -> bytes:
    """The hash of a content under its name: a file that was renamed counts as damaged."""
    return HASH(file.name.encode() + b"\n" + content).digest()


_BINARY = getattr(os, "O_BINARY", 0)
