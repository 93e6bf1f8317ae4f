"""R-SYS-8: several API servers on one etcd, podling's and Kubernetes'; what one has answered, others have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import permutations, takewhile
from pathlib import Path
from typing import Any

import pytest

from peer import control_plane
from peer.server import Asking

pytestmark = pytest.mark.interop("kube-apiserver", "API server")

MERGE_PATCH = "application/merge-patch+json"
CONFIGS = "/api/v1/namespaces/default/configmaps"
ROUNDS = 40
SERVICES = "/api/v1/namespaces/default/services"
NARROW, EACH, TIMES = "10.126.96.0/27", 6, 4
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


def test_of_servers_that_choose_at_once_none_gives_a_node_port_twice(servers: dict[str, Asking]) -> None:
    """All ask for the same ports, which one alone gets; the others choose, and none chooses what another
    has."""

    def ports_of(made: Any) -> list[int]:
        return [port["nodePort"] for port in made["spec"]["ports"]]

    def make(server: str) -> list[int]:
        given = []
        for number in range(EACH):
            spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30100 + number}]}
            path, body = SERVICES, {"metadata": {"name": f"{server}-np-{number}"}, "spec": spec}
            made = servers[server].ask("POST", path, body)
            if made.code == 422:
                assert "provided port is already allocated" in made.body["message"]
                del spec["ports"][0]["nodePort"]  # type: ignore[attr-defined]
                made = servers[server].ask("POST", path, body)
            assert made.code == 201, made.body
            given += ports_of(made.body)
        return given

    with ThreadPoolExecutor(len(NAMES)) as at_once:
        given = [port for some in at_once.map(make, NAMES) for port in some]
    assert len(set(given)) == EACH * len(NAMES)
    assert set(given) > set(range(30100, 30100 + EACH))
    # Whoever deletes gives the port back to whoever asks for it next.
    for giver, taker in PAIRS:
        assert servers[giver].ask("DELETE", f"{SERVICES}/{giver}-np-0").code == 200
        (port,) = given[NAMES.index(giver) * EACH :][:1]
        body = {
            "metadata": {"name": f"{giver}-np-0"},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]},
        }
        made = servers[taker].ask("POST", SERVICES, body)
        assert made.code == 201, made.body
        assert ports_of(made.body) == [port]
    for server in NAMES:
        for number in range(EACH):
            assert servers[server].ask("DELETE", f"{SERVICES}/{server}-np-{number}").code == 200


def test_servers_that_patch_one_object_at_once_lose_nothing_and_refuse_nothing(
    servers: dict[str, Asking],
) -> None:
    assert servers["kubernetes"].ask("POST", CONFIGS, {"metadata": {"name": "shared"}}).code == 201

    def patch(server: str) -> list[int]:
        bodies = [{"data": {f"{server}-{number}": "-"}} for number in range(ROUNDS)]
        path = f"{CONFIGS}/shared"
        return [servers[server].ask("PATCH", path, body, Content_Type=MERGE_PATCH).code for body in bodies]

    with ThreadPoolExecutor(len(NAMES)) as at_once:
        codes = [code for some in at_once.map(patch, NAMES) for code in some]
    assert set(codes) == {200}
    data = servers["podling-1"].ask("GET", f"{CONFIGS}/shared").body["data"]
    assert len(data) == ROUNDS * len(NAMES)


def test_servers_that_evict_at_once_never_go_below_the_budget(servers: dict[str, Asking]) -> None:
    asking, space = servers["podling-1"], "/api/v1/namespaces/evicted"
    assert asking.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "evicted"}}).code == 201
    assert asking.ask("POST", f"{space}/serviceaccounts", {"metadata": {"name": "default"}}).code in (
        201,
        409,
    )
    container = {"name": "a", "image": "i"}
    for server in NAMES:
        metadata = {"name": server, "labels": {"app": "a"}}
        made = asking.ask(
            "POST", f"{space}/pods", {"metadata": metadata, "spec": {"containers": [container]}}
        )
        assert made.code == 201, made.body
        # Others may go without being charged.
        ready = [{"type": "Ready", "status": "True"}]
        running = {"status": {"phase": "Running", "conditions": ready}}
        patched = asking.ask("PATCH", f"{space}/pods/{server}/status", running, Content_Type=MERGE_PATCH)
        assert patched.code == 200, patched.body
    budgets = "/apis/policy/v1/namespaces/evicted/poddisruptionbudgets"
    wanted = {"minAvailable": 2, "selector": {"matchLabels": {"app": "a"}}}
    made = asking.ask("POST", budgets, {"metadata": {"name": "b"}, "spec": wanted}).body
    # Nobody counts here: the disruption controller is a part of its own.
    counted = {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}
    made["status"] = {**counted, "observedGeneration": made["metadata"]["generation"]}
    assert asking.ask("PUT", f"{budgets}/b/status", made).code == 200

    def evict(server: str) -> int:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": server}}
        return servers[server].ask("POST", f"{space}/pods/{server}/eviction", body).code

    with ThreadPoolExecutor(len(NAMES)) as at_once:
        codes = list(at_once.map(evict, NAMES))
    assert sorted(codes) == [201, 429, 429]
    assert asking.ask("GET", f"{budgets}/b").body["status"]["disruptionsAllowed"] == 0


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


def test_servers_that_nobody_asks_change_no_objects_in_turns(servers: dict[str, Asking]) -> None:
    """Two of them have one address and different ports, and no endpoints, since it is one of loopback."""
    asking = servers["podling-1"]
    since = asking.ask("GET", CONFIGS).body["metadata"]["resourceVersion"]
    for _ in range(ROUNDS * 20):
        asking.ask("GET", f"{CONFIGS}/kube-root-ca.crt")
    assert asking.ask("POST", CONFIGS, {"metadata": {"name": "at-rest"}}).code == 201
    names = [
        one["metadata"]["name"]
        for one in takewhile(
            lambda one: one["metadata"]["name"] != "at-rest",
            servers["podling-2"].watch(f"/api/v1/configmaps?watch=1&resourceVersion={since}"),
        )
    ]
    assert max(Counter(names).values(), default=0) <= 1
