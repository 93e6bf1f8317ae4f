"""The pods' network: the CNI configuration of their bridge, and the nftables rule by which they reach beyond
it.

The rule masquerades the whole subnet, in a table of this podling's own. The bridge plugin could do it, but
would add and remove iptables rules for every pod.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
from pathlib import Path

NETWORK_NAME = "podling"


def cni_configuration(bridge: str, subnet: str, address_dir: Path) -> str:
    """A CNI 1.0 list: the bridge with host-local addresses, kept under `address_dir`, and host ports."""
    plugins = [
        {
            "type": "bridge",
            "bridge": bridge,
            "isDefaultGateway": True,
            "hairpinMode": True,
            "ipMasq": False,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": subnet}]], "dataDir": str(address_dir)},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    return json.dumps({"cniVersion": "1.0.0", "name": NETWORK_NAME, "plugins": plugins}, indent=2) + "\n"


def gateway(subnet: str) -> str:
    """The address of the bridge: the first host of the subnet."""
    return str(next(ipaddress.ip_network(subnet).hosts()))


class NetworkError(Exception):
    """The network could not be set up; the message has the output of `nft` or `ip`."""


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


async def set_up_masquerade(table: str, subnet: str) -> None:
    await _run("nft", "-f", "-", script=ruleset(table, subnet))


async def tear_down_masquerade(table: str, bridge: str) -> None:
    """Remove the table and the bridge; either may be gone already."""
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
