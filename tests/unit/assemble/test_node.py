"""What the command line sets of a node is what its kubelet is built with."""

from __future__ import annotations

import socket
from pathlib import Path

from podling.assemble.node import NodeSettings
from podling.assemble.node_options import NodeOptions
from podling.kubelet.options.table import ALONE, DEFAULTS, OPTIONS
from podling.machine.instance import Instance
from podling.machine.pki import KeyPair


def test_every_option_reaches_the_kubelet(tmp_path: Path) -> None:
    told = {option.attribute: DEFAULTS[option.attribute] for option in (*ALONE, *OPTIONS)}
    told |= {"max_pods": 7, "pod_manifest_path": tmp_path, "cluster_domain": "example.org"}
    told |= {"node_labels": {"a": "b"}, "register_node": False}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = NodeSettings(
            instance=Instance.at(tmp_path),
            options=NodeOptions(settings=told),
            ip="127.0.0.1",
            listener=listener,
            subnets="10.0.0.0/24",
            serving=KeyPair(tmp_path, tmp_path),
            client_ca=tmp_path,
        ).kubelet_config()
    assert {attribute: getattr(config, attribute) for attribute in told} == told
