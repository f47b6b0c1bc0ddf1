"""Paths and names that lead elsewhere: modules, outputs through links, names of rules and columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tocsin.cli import files
from tocsin.cli.app import app
from tocsin.cli.queries import module_file
from tocsin.cli.run import folder_name
from tocsin.errors import InputNotReadableError, OutputNotWritableError

TEMPLATE = "template A { x : Integer }\n"


def check(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def program(folder: Path, module: str) -> Path:
    path = folder / "program.parte"
    path.write_text(f"use {module} rule R where a : A")
    return path


# --- modules --------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["`../secret`", "`below/../../secret`", "link", "`{outside}/secret`"])
def test_a_module_outside_the_folder_is_refused_and_not_quoted(tmp_path, module):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "below").mkdir(parents=True)
    outside.mkdir()
    for place in (tmp_path, outside):
        (place / "secret.parte").write_text("password 12345")
    (inside / "link.parte").symlink_to(outside / "secret.parte")
    result = check("check", program(inside, module.format(outside=outside)))
    assert result.exit_code == 1, result.output
    assert "[INPUT_NOT_READABLE]" in result.output
    assert "lies outside the folder of the program." in result.output
    assert "12345" not in result.output


def test_modules_below_the_folder_and_in_allowed_folders_are_read(tmp_path):
    inside, shared = tmp_path / "inside", tmp_path / "shared"
    (inside / "below").mkdir(parents=True)
    shared.mkdir()
    (inside / "below" / "bank.parte").write_text(TEMPLATE)
    (shared / "bank.parte").write_text(TEMPLATE)
    assert check("check", program(inside, "`below/bank`")).exit_code == 0
    assert check("check", program(inside, "bank")).exit_code != 0
    for module in ("bank", "`../shared/bank`"):
        result = check("--modules", shared, "check", program(inside, module))
        assert result.exit_code == 0, result.output
    assert check("check", program(inside, "bank")).exit_code != 0  # an option of one call


def test_a_module_whose_name_no_file_can_have_is_unknown(tmp_path):
    for name in ("a\0b", "x" * 5_000):
        assert module_file(name, [tmp_path]) is None
    with pytest.raises(InputNotReadableError):
        module_file("/etc/passwd", [tmp_path])


# --- outputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", files.MODES)
@pytest.mark.parametrize("out", ["dangling", "dangling/below"])
def test_an_output_behind_a_dangling_link_is_refused_before_the_job(tmp_path, out, mode):
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputNotWritableError, match="which is not there"):
        files.check_output(str(tmp_path / out), mode, ["events.csv"])


@pytest.mark.parametrize("mode", files.MODES)
@pytest.mark.parametrize("out", ["one", "one/below"])
def test_an_output_behind_links_in_a_circle_is_refused(tmp_path, out, mode):
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")
    with pytest.raises(OutputNotWritableError):
        files.check_output(str(tmp_path / out), mode, ["events.csv"])
    (tmp_path / "circle.parte").symlink_to(tmp_path / "circle.parte")
    assert module_file("circle", [tmp_path]) is None


def test_an_output_through_a_link_replaces_what_it_leads_to(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.mkdir()
    (target / "old").touch()
    link.symlink_to(target)
    files.check_output(str(link), "overwrite", ["events.csv"])
    with files.replacing(str(link), "overwrite") as place:
        Path(place).mkdir()
        (Path(place) / "new").touch()
    assert link.is_symlink()
    assert [each.name for each in target.iterdir()] == ["new"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "target"]


def test_the_folder_of_a_rule_stays_inside_the_output(tmp_path):
    for name in ("..", ".", "../../up", "/etc", "a/b", "\0", "é x", " ", "…", "Refund", "%2F", "`"):
        folder = tmp_path / folder_name(name)
        folder.mkdir()
        assert folder.resolve().parent == tmp_path
    assert (folder_name("Refund"), folder_name("Größe")) == ("Refund", "Größe")


def test_columns_with_backquotes_are_shown_and_written_as_csv(spark, tmp_path):
    frame = spark.sql("SELECT named_struct('x`y', 1) AS `a``b`, 2 AS `c``d`, 3 AS `e.f`")
    assert files.flat(frame, as_text=True).columns == ["a`b", "c`d", "e.f"]
    files.save(frame, str(tmp_path / "out"), "csv", "error")
    (part,) = (tmp_path / "out").glob("*.csv")
    assert part.read_text().splitlines() == ["a`b,c`d,e.f", '"{""x`y"":1}",2,3']
