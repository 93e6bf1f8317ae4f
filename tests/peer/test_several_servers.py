"""R-SYS-8: several API servers on one etcd, podling's and Kubernetes'; what one has answered, others have."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import pytest

from peer import control_plane
from peer.server import Asking

pytestmark = pytest.mark.interop("kube-apiserver", "API server")

CONFIGS = "/api/v1/namespaces/default/configmaps"
ROUNDS = 40
SERVICES = "/api/v1/namespaces/default/services"
NARROW, EACH, TIMES = "10.96.0.0/27", 6, 4
"""A range of services in which servers that do not know of each other's choice soon choose the same."""
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
                control_plane.kubernetes(
                    kubernetes_programs, own, f"--service-cluster-ip-range={NARROW}", etcd_url=etcd
                )
                if name == "kubernetes"
                else control_plane.podling(
                    own, f"--etcd-servers={etcd}", f"--service-cluster-ip-range={NARROW}"
                )
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


def test_of_servers_that_choose_at_once_none_gives_an_address_twice(servers: dict[str, Asking]) -> None:
    def make(server: str) -> list[str]:
        given = []
        for number in range(EACH):
            body = {"metadata": {"name": f"{server}-{number}"}, "spec": {"ports": [{"port": 80}]}}
            made = servers[server].ask("POST", SERVICES, body)
            assert made.code == 201, made.body
            given.append(made.body["spec"]["clusterIP"])
        return given

    with ThreadPoolExecutor(len(NAMES)) as at_once:
        for _ in range(TIMES):
            given = [address for some in at_once.map(make, NAMES) for address in some]
            assert len(set(given)) == EACH * len(NAMES)
            for server in NAMES:
                for number in range(EACH):
                    assert servers[server].ask("DELETE", f"{SERVICES}/{server}-{number}").code == 200


def test_servers_that_charge_a_quota_at_once_never_exceed_it(servers: dict[str, Asking]) -> None:
    asking = servers["podling-1"]
    assert asking.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "charged"}}).code == 201
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"secrets": "9"}}}
    quotas = "/api/v1/namespaces/charged/resourcequotas"
    made = asking.ask("POST", quotas, quota).body
    # Nobody counts here: the quota controller is a part of its own.
    made["status"] = {"hard": {"secrets": "9"}, "used": {"secrets": "0"}}
    assert asking.ask("PUT", f"{quotas}/few/status", made).code == 200
    for server in NAMES:
        assert servers[server].ask("GET", f"{quotas}/few").body["status"] == made["status"]

    def fill(server: str) -> int:
        codes = [
            servers[server]
            .ask("POST", "/api/v1/namespaces/charged/secrets", {"metadata": {"name": f"{server}-{number}"}})
            .code
            for number in range(EACH)
        ]
        assert set(codes) <= {201, 403, 409}
        return codes.count(201)

    with ThreadPoolExecutor(len(NAMES)) as at_once:
        stored = sum(at_once.map(fill, NAMES))
    used = asking.ask("GET", f"{quotas}/few").body["status"]["used"]
    assert 0 < stored <= 9
    assert used == {"secrets": str(stored)}
