"""R-SYS-8: several API servers on one etcd, podling's and Kubernetes'; what one has answered, others have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import pytest

from peer import control_plane
from peer.server import Asking

pytestmark = pytest.mark.interop("kube-apiserver", "API server")

CONFIGS = "/api/v1/namespaces/default/configmaps"
ROUNDS = 40
NAMES = ("podling-1", "podling-2", "kubernetes")
PAIRS = list(permutations(NAMES, 2))


@pytest.fixture(scope="module")
def servers(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Asking]]:
    directory = tmp_path_factory.mktemp("several")
    with ExitStack() as stack:
        etcd = stack.enter_context(
            control_plane.etcd_server(kubernetes_programs / "etcd", directory, durable=False)
        )
        made = {}
        for name in NAMES:
            (own := directory / name).mkdir()
            server = stack.enter_context(
                control_plane.kubernetes(kubernetes_programs, own, etcd_url=etcd)
                if name == "kubernetes"
                else control_plane.podling(own, f"--etcd-servers={etcd}")
            )
            made[name] = stack.enter_context(server.asking())
        yield made


@pytest.mark.parametrize(("writer", "reader"), PAIRS, ids=map("-to-".join, PAIRS))
def test_what_one_has_answered_any_other_has(servers: dict[str, Asking], writer: str, reader: str) -> None:
    writes, reads = servers[writer], servers[reader]
    name = f"{writer}-{reader}"
    made = writes.ask("POST", CONFIGS, {"metadata": {"name": name}, "data": {"n": "-"}})
    assert made.code == 201
    for number in range(ROUNDS):
        body = {"metadata": {"name": name}, "data": {"n": str(number)}}
        written = writes.ask("PUT", f"{CONFIGS}/{name}", body)
        assert written.code == 200
        version = written.body["metadata"]["resourceVersion"]
        if number % 2:
            read = reads.ask("GET", f"{CONFIGS}/{name}").body
        else:
            listed = reads.ask("GET", CONFIGS).body
            assert int(listed["metadata"]["resourceVersion"]) >= int(version)
            (read,) = (one for one in listed["items"] if one["metadata"]["name"] == name)
        assert (read["data"], read["metadata"]["resourceVersion"]) == ({"n": str(number)}, version)
        # Who has read it may write it, there and here.
        read["data"]["n"] = f"{number} of the reader"
        assert reads.ask("PUT", f"{CONFIGS}/{name}", read).code == 200
        refused = writes.ask("PUT", f"{CONFIGS}/{name}", {**read, "data": {}})
        assert refused.code == 409
    assert reads.ask("DELETE", f"{CONFIGS}/{name}").code == 200
    assert writes.ask("GET", f"{CONFIGS}/{name}").code == 404
    assert writes.ask("POST", CONFIGS, {"metadata": {"name": name}}).code == 201
    assert reads.ask("POST", CONFIGS, {"metadata": {"name": name}}).code == 409
