from __future__ import annotations

import subprocess

import pytest

from podling.network import masquerade
from podling.network.masquerade import NetworkError


def listing(*what: str) -> str:
    return subprocess.run(["nft", "list", *what], capture_output=True, text=True, check=True).stdout


async def test_set_up_twice_leaves_one_rule_and_tear_down_none() -> None:
    table = "podling-unit-test"
    await masquerade.set_up(table, "10.127.0.0/24")
    await masquerade.set_up(table, "10.127.0.0/24")
    assert listing("table", "ip", table).count("masquerade") == 1
    await masquerade.tear_down(table, "podling-none")
    assert table not in listing("tables")
    await masquerade.tear_down(table, "podling-none")


async def test_what_the_tool_says_is_the_error() -> None:
    with pytest.raises(NetworkError, match="nft"):
        await masquerade.set_up("bad table name", "10.127.0.0/24")


async def test_a_command_without_a_script_has_no_pipe_that_its_end_could_break() -> None:
    await masquerade._run("sh", "-c", 'test "$(readlink /proc/self/fd/0)" = /dev/null')
    with pytest.raises(NetworkError):
        await masquerade._run("sh", "-c", 'test "$(readlink /proc/self/fd/0)" = /dev/null', script="x")
