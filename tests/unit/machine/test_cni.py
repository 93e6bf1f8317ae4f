from __future__ import annotations

import json
from pathlib import Path

from podling.machine.network import cni_configuration, gateway


def test_the_list_names_bridge_subnet_and_address_store() -> None:
    written = json.loads(cni_configuration("podling12345678", "10.64.3.0/24", Path("/run/x")))
    bridge, portmap = written["plugins"]
    assert bridge["bridge"] == "podling12345678"
    assert bridge["ipam"] == {
        "type": "host-local",
        "ranges": [[{"subnet": "10.64.3.0/24"}]],
        "dataDir": "/run/x",
    }
    assert portmap["capabilities"] == {"portMappings": True}


def test_gateway() -> None:
    assert gateway("10.64.3.0/24") == "10.64.3.1"
