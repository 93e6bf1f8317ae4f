from __future__ import annotations

import json
from pathlib import Path

from podling.machine.network import cni_configuration, gateway


def test_the_list_names_subnet_default_route_and_address_store() -> None:
    written = json.loads(cni_configuration("10.64.3.0/24", Path("/run/x")))
    link, portmap, bandwidth = written["plugins"]
    assert link["type"] == "ptp"
    assert link["ipam"] == {
        "type": "host-local",
        "ranges": [[{"subnet": "10.64.3.0/24"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/x",
    }
    assert portmap["capabilities"] == {"portMappings": True}
    assert bandwidth["capabilities"] == {"bandwidth": True}


def test_gateway() -> None:
    assert gateway("10.64.3.0/24") == "10.64.3.1"
