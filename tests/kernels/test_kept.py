"""Compiled functions on disk: whose files are read, and that any other file is replaced without a word."""

from __future__ import annotations

import logging
import os
import pickle
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tocsin
from tocsin import kept
from tocsin.errors import QuerySyntaxError
from tocsin.kernels import compile
from tocsin.language import grammars

TEXT = "@compiled\ndef search(x):\n    return x + 41, 0, 0, 0\n"
LIBRARY = "@compiled\ndef twice(x):\n    return 2 * x\n\n\n"
Damage = Callable[[Path], object]


def forget() -> None:
    """What a new process knows: nothing."""
    for cached in (kept.folder, compile.fast, compile._loaded):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's home and temporary directory; nothing of the process is known before or after."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.delenv("TOCSIN_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    forget()
    yield tmp_path / "home"
    forget()


def answer(text: str = TEXT, library: str = "") -> tuple[int, int]:
    """What a new process finds, and how many functions it did not compile."""
    forget()
    search: Any = compile.fast(text, library)
    return search(1)[0], sum(search.stats.cache_hits.values())


def files() -> list[Path]:
    folder = kept.folder()
    assert folder is not None
    return sorted(folder.iterdir())


def test_compiled_functions_are_kept_in_the_users_cache_directory(home: Path) -> None:
    assert answer() == (42, 0)
    folder = kept.folder()
    assert folder is not None and folder.is_relative_to(home)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(files()) == 1 and compile.kept_functions.has(compile._name(TEXT))
    assert answer() == (42, 1)


def test_functions_that_others_call_are_kept_too() -> None:
    text = "@compiled\ndef search(x):\n    return twice(x), 0, 0, 0\n"
    assert answer(text, LIBRARY) == (2, 0)
    assert len(files()) == 2
    assert answer(text, LIBRARY) == (2, 1)


class Planted:
    """Code that runs when it is unpickled: it makes a directory."""

    def __init__(self, trace: Path) -> None:
        self.trace = str(trace)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.trace,)


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:-100]),
        lambda file: file.write_bytes(file.read_bytes()[:20]),
        lambda file: file.write_bytes(file.read_bytes()[:-1] + b"?"),
        lambda file: file.write_bytes(pickle.dumps(Planted(file.parent.parent / "ran"))),
        lambda file: file.chmod(0o666),
        lambda file: file.replace(file.with_suffix(".moved")) and file.symlink_to(file.with_suffix(".moved")),
        lambda file: file.unlink() or os.mkfifo(file),
    ],
    ids=["empty", "cut", "short", "changed", "planted", "writable", "link", "pipe"],
)
def test_a_file_that_is_not_as_written_is_replaced_silently(damage: Damage, caplog: pytest.LogCaptureFixture) -> None:
    answer()
    (file,) = files()
    damage(file)
    with caplog.at_level(logging.INFO):
        assert answer() == (42, 0)
    assert not caplog.records
    assert not (file.parent.parent / "ran").exists()
    assert answer() == (42, 1)


def test_a_renamed_file_is_not_read() -> None:
    other = TEXT.replace("41", "1")
    answer(other)
    (file,) = files()
    answer()
    (mine,) = (each for each in files() if each != file)
    mine.write_bytes(file.read_bytes())
    assert answer() == (42, 0)


def test_files_of_another_user_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    answer()
    (file,) = files()
    assert kept.read(file) is not None
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert kept.read(file) is None


def test_a_directory_of_another_user_is_not_used(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    user = os.geteuid()
    for place in (home / ".cache" / "tocsin" / "kernels", Path(tempfile.gettempdir()) / f"tocsin-kernels-{user + 1}"):
        place.mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert answer() == (42, 0)
    assert kept.folder() is None
    assert "Set TOCSIN_CACHE_DIR" in caplog.text
    assert answer() == (42, 0)


def test_a_directory_that_is_a_link_is_not_used(home: Path, tmp_path: Path) -> None:
    (home / ".cache" / "tocsin").mkdir(parents=True)
    (home / ".cache" / "tocsin" / "kernels").symlink_to(tmp_path)
    assert answer() == (42, 0)
    folder = kept.folder()
    assert folder is not None and folder.parent == Path(tempfile.gettempdir())


def test_a_directory_that_others_may_enter_is_closed(home: Path) -> None:
    place = home / ".cache" / "tocsin" / "kernels"
    place.mkdir(parents=True)
    place.chmod(0o777)
    assert kept.folder() == place
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_a_given_directory_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_CACHE_DIR", str(tmp_path / "given"))
    assert answer() == (42, 0)
    assert [file.parent.parent for file in files()] == [tmp_path / "given"]


@pytest.mark.parametrize("place", ["/proc/none", "file", "~/.cache"])
def test_without_a_home_a_private_temporary_directory_serves(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home cannot be written, is a file, or is not known at all, which leaves the tilde."""
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: Path(place) / "tocsin")
    assert answer() == (42, 0)
    folder = kept.folder()
    assert folder is not None and folder.parent == Path(tempfile.gettempdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not (tmp_path / "~").exists()
    assert answer() == (42, 1)


def test_a_full_disk_is_a_warning(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert answer() == (42, 0)
    assert "No space left" in caplog.text and files() == []


def test_a_process_that_can_write_nowhere_still_compiles(tmp_path: Path) -> None:
    """HOME and the temporary directory cannot be written, and nothing is written beside the installed files."""
    program = (
        "import tempfile; tempfile.tempdir = '/proc/none'\n"
        "from tocsin import kept\nfrom tocsin.kernels import compile\n"
        f"assert compile.fast({TEXT!r})(1)[0] == 42 and kept.folder() is None\n"
    )
    environment = {**os.environ, "HOME": "/proc/none", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("TOCSIN_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1 and "Set TOCSIN_CACHE_DIR" in done.stderr


@pytest.mark.spark
def test_workers_keep_theirs_in_a_private_directory_and_replace_damaged_files(spark: Any, tmp_path: Path) -> None:
    def on_a_worker(frames: Iterator[Any]) -> Iterator[Any]:
        import os
        import tempfile

        import pandas as pd

        from tocsin import kept
        from tocsin.kernels import compile

        list(frames)
        os.environ["HOME"] = "/proc/none"
        os.environ.pop("TOCSIN_CACHE_DIR", None)
        tempfile.tempdir = temporary
        rows = []
        for _ in range(2):
            for cached in (kept.folder, compile.fast, compile._loaded):
                cached.cache_clear()
            found = compile.fast(text)(1)[0]
            folder = kept.folder()
            rows.append((found, str(folder), oct(os.stat(folder).st_mode & 0o777)))
            for file in folder.iterdir():
                file.write_bytes(b"")
        tempfile.tempdir = None
        kept.folder.cache_clear()
        yield pd.DataFrame(rows, columns=["found", "folder", "mode"])

    text, temporary = TEXT, str(tmp_path)
    rows = spark.range(1).coalesce(1).mapInPandas(on_a_worker, "found long, folder string, mode string").collect()
    folder = f"{tmp_path}/tocsin-kernels-{os.geteuid()}"
    assert [tuple(row) for row in rows] == [(42, folder, "0o700")] * 2


def test_the_tables_of_parsers_are_kept_too() -> None:
    def parsed() -> tuple[str, str]:
        grammars.grammar.cache_clear()
        with pytest.raises(QuerySyntaxError) as refused:
            tocsin.pattern("PATTERN SEQ(A a, B b WITHIN 1 HOUR")
        return str(tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 1 HOUR")), str(refused.value)

    made = parsed()
    (file,) = files()
    assert file.suffix == ".parser"
    written = file.read_bytes()
    assert parsed() == made
    file.write_bytes(written[:-1])  # damaged, and replaced
    assert parsed() == made and kept.read(file) is not None
    grammars.grammar.cache_clear()
