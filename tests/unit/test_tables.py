"""What `pytest --whole-tables` takes for a table, and how it reports rows that fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TABLES = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.mark.parametrize(("a", "b"), [(1, 1), pytest.param(1, 2, id="odd"), (2, 2), (3, 1)])
def test_pairs(a, b):
    assert a == b

@pytest.mark.parametrize("text", ["x", "1"])
def test_words(text):
    with pytest.raises(ValueError):
        int(text)

@pytest.mark.parametrize(["text"], [["x"], ["y"]], ids=["one", "two"])
def test_right_ones(text):
    assert text.isalpha()

@pytest.mark.parametrize("text", ["x", "y"])
def test_with_a_fixture(text, tmp_path):
    assert tmp_path

@pytest.mark.parametrize("text", ["x", pytest.param("y", marks=pytest.mark.xfail)])
def test_with_a_mark(text):
    assert text == "x"

@pytest.mark.parametrize("text", ["x", "y"])
@pytest.mark.parametrize("number", [1, 2])
def test_two_tables(text, number):
    pass
"""
APART = "3 failed, 12 passed, 1 xfailed"
WHOLE = "2 failed, 8 passed, 1 xfailed"


def ran(directory: Path, *options: str) -> str:
    (directory / "conftest.py").write_text('pytest_plugins = ["tables"]\n')
    (directory / "pytest.ini").write_text(f"[pytest]\npythonpath = {TABLES}\n")
    (directory / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False).stdout


def test_every_row_that_fails_is_reported_with_its_values(tmp_path: Path) -> None:
    said = ran(tmp_path, "--whole-tables")
    for line in (
        WHOLE,
        "2 of 4 rows",
        "row 1 odd: {'a': 1, 'b': 2}",
        "row 3 : {'a': 3, 'b': 1}",
        "assert 3 == 1",
        "1 of 2 rows",
        "row 1 : {'text': '1'}",
        "DID NOT RAISE",
    ):
        assert line in said, said


def test_without_the_option_each_row_is_a_test(tmp_path: Path) -> None:
    said = ran(tmp_path)
    assert APART in said, said
    assert "test_it.py::test_pairs[odd]" in said
