"""R-SYS-8: the endpoints of the service `kubernetes` are all API servers that live on one etcd, podling's and
Kubernetes' together; who leaves is gone at once, who was killed when its lease ends."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from peer import control_plane
from peer.server import Server
from podling.machine.start import machine_address
from ports import free_port

pytestmark = pytest.mark.interop("kube-apiserver", "API server")

ALL = "/api/v1/namespaces/default/endpoints"
ENDPOINTS = f"{ALL}/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
ELSEWHERE = "192.0.2.10"
"""Where kube-apiserver says that it is: it looks at the address no further."""
LISTENS = "127.0.0.2"
"""Both have one port, as the endpoints do."""
WITHIN, ENDED_WITHIN = 12.0, 25.0
"""Seconds. kube-apiserver looks every 10; a lease lasts 15, and etcd needs some more."""


def listed(server: Server) -> list[str]:
    found = server.ask("GET", ENDPOINTS).body
    slice = server.ask("GET", SLICE).body
    addresses = [one["ip"] for subset in found.get("subsets", ()) for one in subset["addresses"]]
    return sorted(addresses) if addresses == [one["addresses"][0] for one in slice["endpoints"]] else []


def until(wanted: list[str], server: Server, seconds: float) -> None:
    begun, found = time.monotonic(), [""]
    with server.asking() as asking:
        for endpoints in asking.watch(f"{ALL}?watch=1&fieldSelector=metadata.name%3Dkubernetes"):
            found = sorted(one["ip"] for one in endpoints["subsets"][0]["addresses"])
            if found == wanted:
                break
    took = time.monotonic() - begun
    assert (found, took < seconds) == (wanted, True), f"after {took:.1f} s"


def assert_leaves_in_order(server: Server, other: Server, process: subprocess.Popen[bytes]) -> None:
    """One that was told to end: it is not ready, then not listed, and answers still, for a while."""
    until([ELSEWHERE], other, WITHIN)
    ready = server.ask("GET", "/readyz?verbose")
    assert (ready.code, "[-]shutdown failed" in str(ready.body)) == (500, True), ready.body
    assert server.ask("GET", "/livez").code == 200
    assert server.ask("GET", ENDPOINTS).code == 200
    assert process.wait(20) == 0


def test_the_endpoints_are_the_servers_that_live(kubernetes_programs: Path, tmp_path: Path) -> None:
    own, port = machine_address(), free_port()
    both = sorted([own, ELSEWHERE])
    (tmp_path / "podling").mkdir()
    (tmp_path / "kubernetes").mkdir()
    with ExitStack() as stack:
        etcd = stack.enter_context(
            control_plane.etcd_server(kubernetes_programs / "etcd", tmp_path, durable=False)
        )

        def podling() -> tuple[Server, subprocess.Popen[bytes]]:
            flags = ("--etcd-servers", etcd, "--advertise-address", own, "--shutdown-delay-duration", "2s")
            return stack.enter_context(control_plane.podling_process(tmp_path / "podling", port, *flags))

        first, process = podling()
        until([own], first, WITHIN)
        with ExitStack() as other:
            kubernetes = other.enter_context(
                control_plane.kubernetes(
                    kubernetes_programs,
                    tmp_path / "kubernetes",
                    "--endpoint-reconciler-type=lease",
                    f"--advertise-address={ELSEWHERE}",
                    etcd_url=etcd,
                    host=LISTENS,
                    port=port,
                )
            )
            until(both, kubernetes, WITHIN)
            assert listed(first) == both
            process.send_signal(signal.SIGTERM)
            assert_leaves_in_order(first, kubernetes, process)
            # kube-apiserver looks every ten seconds; who leaves does it himself before he ends.
            assert listed(kubernetes) == [ELSEWHERE]
            second, _ = podling()
            until(both, kubernetes, WITHIN)
        # Killed: only its lease is left, and says so when it ends.
        assert listed(second) == both
        until([own], second, ENDED_WITHIN)
