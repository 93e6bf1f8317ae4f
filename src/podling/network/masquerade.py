"""The one rule that lets pods reach beyond their bridge, in an nftables table of this podling's own."""

from __future__ import annotations

import asyncio


class NetworkError(Exception):
    """The machine's network could not be set up; the message carries the tool's own words."""


def ruleset(table: str, subnet: str) -> str:
    """An nft script that replaces `table` as a whole, so that running it twice leaves one rule."""
    return (
        f"table ip {table} {{}}\n"
        f"delete table ip {table}\n"
        f"table ip {table} {{\n"
        "  chain postrouting {\n"
        "    type nat hook postrouting priority srcnat; policy accept;\n"
        f"    ip saddr {subnet} ip daddr != {subnet} masquerade\n"
        "  }\n"
        "}\n"
    )


async def set_up(table: str, subnet: str) -> None:
    await _run("nft", "-f", "-", script=ruleset(table, subnet))


async def tear_down(table: str, bridge: str) -> None:
    """Remove the table and the bridge; what is already gone is fine."""
    await _run("nft", "-f", "-", script=f"table ip {table} {{}}\ndelete table ip {table}\n")
    try:
        await _run("ip", "link", "delete", bridge)
    except NetworkError as error:
        if "Cannot find device" not in str(error):
            raise


async def _run(*command: str, script: str | None = None) -> None:
    # A pipe to a command that reads nothing breaks when that ends first.
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL if script is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate(None if script is None else script.encode())
    if process.returncode != 0:
        raise NetworkError(f"{' '.join(command)}: {errors.decode(errors='replace').strip()}")
