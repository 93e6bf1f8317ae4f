"""What `podling debug -l …` prints in each form, and with which exit code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from podling.cli.debug_options import OfFleet
from podling.cli.fleet import debug_fleet
from podling.debug.container import Wish
from podling.remote import fleet
from podling.remote.adding import Request
from podling.remote.fleet import Outcome

WELL = Outcome("one", "web", "debug", 0, "", 0.25, "fine\nand more\n")
ILL = Outcome("one", "sick", "debug", 9, "", 1.0, "")
NOT = Outcome("two", "gone", "debug", None, "it has \x1b[2Jfinished", 0.0, "")


@pytest.fixture
def shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """The exit code and what was printed, the outcomes being given."""

    def run(output: str | None, *outcomes: Outcome, quiet: bool = False) -> tuple[int, str, str]:
        async def debug_all(
            _: Any, __: Any, ___: Any, parallel: int, tell: Callable[[Outcome], None]
        ) -> Sequence[Outcome]:
            assert parallel == 3
            for one in outcomes:
                tell(one)
            return outcomes

        monkeypatch.setattr(fleet, "debug_all", debug_all)
        asked = OfFleet("a=b", False, 3, tmp_path / "kept", output)
        pods = cast(Any, outcomes)
        code = asyncio.run(debug_fleet(cast(Any, None), Request("one", "", Wish()), pods, asked, quiet=quiet))
        return code, *capsys.readouterr()

    return run


def test_a_line_as_each_is_done_and_a_table(
    shown: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    code, out, err = shown(None, WELL, ILL, NOT)
    assert code == 1
    assert err == (
        "1/3  one/web  ok\n2/3  one/sick  exit code 9\n3/3  two/gone  not debugged: it has ^[[2Jfinished\n"
    )
    assert [line.split() for line in out.splitlines()[:3]] == [
        ["NAMESPACE", "POD", "RESULT", "TOOK", "FIRST", "LINE"],
        ["one", "web", "ok", "0.2s", "fine"],
        ["one", "sick", "exit", "code", "9", "1.0s", "-"],
    ]
    assert "\x1b" not in out
    assert (tmp_path / "kept/one/web.log").read_text() == "fine\nand more\n"
    assert shown(None, WELL, quiet=True)[::2] == (0, "")


def test_more_columns(shown: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = shown("wide", WELL)
    assert (code, err) == (0, "1/1  one/web  ok\n")
    assert out.splitlines()[0].split()[-2:] == ["CONTAINER", "LINES"]
    assert out.splitlines()[1].split()[-2:] == ["debug", "2"]


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_all_of_it_for_programs(
    shown: Callable[..., tuple[int, str, str]], form: str, read: Callable[[str], Any]
) -> None:
    code, out, err = shown(form, WELL, NOT)
    assert (code, err) == (1, "")
    assert read(out)[0] == {
        "namespace": "one",
        "pod": "web",
        "container": "debug",
        "exit_code": 0,
        "why_not": "",
        "seconds": 0.25,
        "output": "fine\nand more\n",
    }
    assert [one["exit_code"] for one in read(out)] == [0, None]


def test_the_names_of_those_where_it_did_not_succeed(shown: Callable[..., tuple[int, str, str]]) -> None:
    assert shown("name", WELL, ILL, NOT) == (1, "one/sick\ntwo/gone\n", "")
    assert shown("name", WELL) == (0, "", "")


def test_no_pods(shown: Callable[..., tuple[int, str, str]]) -> None:
    assert shown(None) == (0, "", "No pods found.\n")
    assert shown("json") == (0, "[]\n", "")
