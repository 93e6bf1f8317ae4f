from __future__ import annotations

import os
import subprocess

import pytest

from podling.machine.network import NetworkError, _run, set_up_masquerade, tear_down_masquerade

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing the network needs root")


def listing(*what: str) -> str:
    return subprocess.run(["nft", "list", *what], capture_output=True, text=True, check=True).stdout


@needs_root
async def test_set_up_twice_leaves_one_rule_and_tear_down_none() -> None:
    table = "podling-unit-test"
    await set_up_masquerade(table, "10.127.0.0/24")
    await set_up_masquerade(table, "10.127.0.0/24")
    assert listing("table", "ip", table).count("masquerade") == 1
    await tear_down_masquerade(table, "podling-none")
    assert table not in listing("tables")
    await tear_down_masquerade(table, "podling-none")


@needs_root
async def test_what_the_tool_says_is_the_error() -> None:
    with pytest.raises(NetworkError, match="nft"):
        await set_up_masquerade("bad table name", "10.127.0.0/24")


async def test_a_command_that_reads_nothing_of_its_script_is_done_all_the_same() -> None:
    assert await _run("echo", "done", script="x" * 1_000_000) == "done\n"
