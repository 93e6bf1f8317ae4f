"""What goes in and what comes out: a command in a running container, and the log file of one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podling.cri.interface import EventKind, RuntimeFault

if TYPE_CHECKING:
    from contract.cri.conftest import Kit

_COMMAND = ["sh", "-c", "echo out; echo err >&2; exit 4"]
_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z (stdout|stderr) F (.*)")


async def test_a_command_answers_with_output_and_exit_code(kit: Kit) -> None:
    async with kit.started("runs") as container_id:
        answer = await kit.runtime.exec_sync(container_id, _COMMAND, 10)
        assert (answer.exit_code, answer.stdout, answer.stderr) == (4, b"out\n", b"err\n")


async def test_the_end_of_a_command_is_not_the_end_of_its_container(kit: Kit) -> None:
    async with kit.listening() as ears, kit.started("runs") as container_id:
        await kit.runtime.exec_sync(container_id, _COMMAND, 10)
        await kit.runtime.stop_container(container_id, 10)
        assert (await ears.next(EventKind.EXITED, container_id)).exit_code == 7


async def test_a_command_that_is_not_there_is_a_fault(kit: Kit) -> None:
    async with kit.started("runs") as container_id:
        with pytest.raises(RuntimeFault, match="executable file not found"):
            await kit.runtime.exec_sync(container_id, ["no-such-command"], 10)


async def test_no_command_runs_in_a_container_that_has_ended(kit: Kit) -> None:
    async with kit.started("runs") as container_id:
        await kit.runtime.stop_container(container_id, 10)
        with pytest.raises(RuntimeFault):
            await kit.runtime.exec_sync(container_id, ["true"], 10)


async def test_a_log_has_every_line_with_its_stream_and_time(kit: Kit) -> None:
    """R-INIT-8: what an init container said is read from this file for as long as the pod is there."""
    async with kit.listening() as ears, kit.started("prints") as container_id:
        await ears.next(EventKind.EXITED, container_id)
        path = Path((await kit.ended(container_id)).log_path)
        assert path == kit.log_directory / "prints.log"
        lines = [_LINE.fullmatch(line) for line in path.read_text().splitlines()]
        assert sorted(line.group(2, 3) if line else () for line in lines) == [
            ("stderr", "bad"),
            ("stdout", "one"),
            ("stdout", "two"),
        ]
