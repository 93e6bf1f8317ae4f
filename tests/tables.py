"""`pytest --whole-tables`: a table of rows is one test, where a row needs nothing but its values.

For pytest a test is 2 ms of work, and more in each process of a run that collects it; most functions that are
tested with a table take less. So the whole suite goes through such a table in one test, which reports every
row that fails. Without the option each row is a test, to be run and looked at alone.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import update_wrapper
from typing import Any

import pytest

Row = tuple[str, Mapping[str, Any]]
"""Its id, which may be empty, and its values by name."""
Param: Any = type(pytest.param())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--whole-tables",
        action="store_true",
        help="one test for all rows of a parametrize that gives a test all its arguments",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> pytest.Function | None:
    if not collector.config.getoption("whole_tables") or not collector.funcnamefilter(name):
        return None
    if not inspect.isfunction(obj) or not (rows := tuple(_rows(obj))):
        return None
    made: pytest.Function = pytest.Function.from_parent(collector, name=name, callobj=_through(obj, rows))
    return made


def _rows(test: Callable[..., object]) -> Iterator[Row]:
    """None of a test that is no such table: that has a fixture, other marks, awaits or is of Hypothesis."""
    marks: Sequence[pytest.Mark] = getattr(test, "pytestmark", ())
    if [mark.name for mark in marks] != ["parametrize"] or hasattr(test, "hypothesis"):
        return
    names, values, *others = marks[0].args
    split = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    is_one = isinstance(names, str) and len(split) == 1
    ids = marks[0].kwargs.get("ids")
    if (
        others
        or not isinstance(values, Sequence | Mapping)
        or marks[0].kwargs.keys() - {"ids"}
        or set(split) != inspect.signature(test).parameters.keys()
        or inspect.iscoroutinefunction(test)
        or any(isinstance(value, Param) and value.marks for value in values)
    ):
        return
    for number, row in enumerate(values):
        row_id = ids[number] if isinstance(ids, Sequence) else None
        if isinstance(row, Param):
            row_id = row.id or row_id
        value = row.values if isinstance(row, Param) else (row,) if is_one else row
        yield str(row_id or ""), dict(zip(split, value, strict=True))


def _through(test: Callable[..., object], rows: Sequence[Row]) -> Callable[[], None]:
    def through() -> None:
        failed: list[str] = []
        for number, (row_id, values) in enumerate(rows):
            try:
                test(**values)
            except (Exception, pytest.fail.Exception) as error:
                # Without the frame of this function.
                at = error.__traceback__.tb_next if error.__traceback__ else None
                said = "".join(traceback.format_exception(error.with_traceback(at)))
                failed.append(f"row {number} {row_id}: {values!r:.1000}\n{said}")
        if failed:
            pytest.fail("\n".join((f"{len(failed)} of {len(rows)} rows", *failed)), pytrace=False)

    update_wrapper(through, test)
    vars(through).update(pytestmark=[], __signature__=inspect.Signature())
    return through
