from __future__ import annotations

import os
import socket

import pytest

from podling.process.port_holders import holder
from ports import free_port


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize(("protocol", "kind"), [("tcp", socket.SOCK_STREAM), ("udp", socket.SOCK_DGRAM)])
def test_who_has_a_port(protocol: str, kind: socket.SocketKind, family: socket.AddressFamily) -> None:
    port = free_port()
    assert holder(protocol, port) == "a process"
    with socket.socket(family, kind) as one:
        one.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
        if protocol == "tcp":
            assert holder(protocol, port) == "a process"
            one.listen()
        assert holder(protocol, port).startswith(f"process {os.getpid()} (")
