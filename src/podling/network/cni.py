"""The CNI configuration of the pods' bridge. Pure: text out of addresses.

Masquerading is not asked of the bridge plugin: it would add and remove iptables rules for every pod, where
one rule for the whole subnet (`masquerade.py`) does.
"""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

NETWORK_NAME = "podling"


def conflist(bridge: str, subnet: str, address_dir: Path) -> str:
    """A CNI 1.0 list: a bridge with host-local addresses kept under `address_dir`, and host ports."""
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
    """The bridge's own address: the first host of the subnet."""
    return str(next(ipaddress.ip_network(subnet).hosts()))
