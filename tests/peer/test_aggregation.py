"""R-SYS-8: requests for the groups of other API servers reach these as through Kubernetes' aggregator."""

from __future__ import annotations

import base64
import json
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from peer import control_plane
from peer.extension import AGGREGATED, Extension, serving
from peer.sequence import MERGE_PATCH
from peer.server import Answer, Server
from podling.machine.pki import Authority
from podling.machine.start import machine_address

NAMESPACE = "extensions"
THERE = ("good", "newer", "older")
"""The last knows no aggregated form of discovery."""
NOT_THERE = ("wrong-ca", "other-name", "broken", "refuses", "absent", "no-port", "no-slices", "unready")
GROUPS = (*THERE, *NOT_THERE)
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
PLACE = "/apis/good.test/v1"
BELIEVED = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
LOOKS = 400
COMPARED = ("Content-Type", "X-Own")
HERE = machine_address()


class Behind(msgspec.Struct):
    """A server, and the extension servers behind it."""

    server: Server
    good: Extension
    extensions: dict[str, Extension]
    front: Authority


@pytest.fixture(scope="module")
def both(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Behind]]:
    with ExitStack() as running:
        made = []
        for name in ("kubernetes", "podling"):
            directory = tmp_path_factory.mktemp(name)
            now = datetime.now(UTC)
            front = Authority(directory / "front", now)
            shown = front.client("proxy", "front-proxy-client")
            flags = [
                f"--proxy-client-cert-file={shown.certificate}",
                f"--proxy-client-key-file={shown.key}",
                f"--requestheader-client-ca-file={front.ca.certificate}",
                "--requestheader-allowed-names=front-proxy-client",
                "--requestheader-username-headers=X-Remote-User",
                "--requestheader-group-headers=X-Remote-Group",
                "--requestheader-uid-headers=X-Remote-Uid",
                "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            ]
            if name == "kubernetes":
                own = control_plane.kubernetes(
                    kubernetes_programs, directory, *flags, "--enable-aggregator-routing=true"
                )
            else:
                own = control_plane.podling(directory, *flags)
            server = running.enter_context(own)
            authority = Authority(directory / "extension", now)
            names = [f"{one}.{NAMESPACE}.svc" for one in GROUPS if one != "other-name"]
            pair = authority.server("extension", "extension", names)
            extensions = {
                one: running.enter_context(
                    serving(
                        Extension(f"{one}.test", aggregates=one != "older"),
                        HERE,
                        pair.certificate,
                        pair.key,
                        front.ca.certificate,
                    )
                )
                for one in (*THERE, "broken")
            }
            extensions["broken"].status = 500
            set_up(server, {one: each.port for one, each in extensions.items()}, authority, front)
            made.append(Behind(server, extensions["good"], extensions, front))
        yield made


def set_up(server: Server, ports: dict[str, int], authority: Authority, other: Authority) -> None:
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for name in GROUPS:
        port = {"refuses": 1, **ports}.get(name, ports["good"])
        if name != "absent":
            own = {"metadata": {"name": name}, "spec": {"ports": [{"name": "https", "port": 443}]}}
            assert server.ask("POST", SERVICES, own).code == 201
        if name not in ("absent", "no-slices"):
            part = {
                "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
                "addressType": "IPv4",
                "ports": [{"name": "https", "port": port}],
                "endpoints": [{"addresses": [HERE], "conditions": {"ready": name != "unready"}}],
            }
            assert server.ask("POST", SLICES, part).code == 201
        bundle = (other if name == "wrong-ca" else authority).ca.certificate.read_bytes()
        service = {"namespace": NAMESPACE, "name": name, "port": 444 if name == "no-port" else 443}
        spec = {
            "group": f"{name}.test",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "caBundle": base64.b64encode(bundle).decode(),
            "service": service,
        }
        assert (
            server.ask("POST", API_SERVICES, {"metadata": {"name": f"v1.{name}.test"}, "spec": spec}).code
            == 201
        )


def condition(server: Server, name: str) -> Any:
    """Once there is one, without its time, the port, and what Go says of certificates."""
    for _ in range(LOOKS):
        found = server.ask("GET", f"{API_SERVICES}/v1.{name}.test").body
        if conditions := found.get("status", {}).get("conditions"):
            [told] = conditions
            del told["lastTransitionTime"]
            told["message"] = re.sub(r"(?<=x509: ).*", "…", re.sub(r":\d{2,5}", ":N", told["message"]))
            return told
    raise AssertionError(f"{name} has no condition")


def alike(both: list[Behind], found: Callable[[Behind], Any]) -> Any:
    with ThreadPoolExecutor(2) as pool:
        theirs, ours = pool.map(found, both)
    assert ours == theirs
    return ours


def plain(answer: Answer) -> Any:
    body = answer.body
    if isinstance(body, dict) and "headers" in body:
        credential = "X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id"
        body = {
            **body,
            "headers": {name: value for name, value in body["headers"].items() if name != credential},
        }
    return answer.code, {name: answer.headers.get(name) for name in COMPARED}, body


@pytest.mark.parametrize("name", GROUPS)
def test_the_condition_says_whether_a_server_is_there(both: list[Behind], name: str) -> None:
    told = alike(both, lambda one: condition(one.server, name))
    assert (told["status"] == "True") == (name in THERE)


def apart(document: Any) -> Any:
    """The items of aggregated discovery, without what differs of this server's own."""
    return [
        (name, one["versions"] if ".test" in name else [each["version"] for each in one["versions"]])
        for one in document["items"]
        if (name := one["metadata"]["name"])
    ]


def stated(one: Behind, group: str) -> Any:
    items = one.server.ask("GET", "/apis", Accept=AGGREGATED).body["items"]
    return next((item["versions"] for item in items if item["metadata"]["name"] == group), [])


def once(one: Behind, group: str, wanted: str) -> None:
    """Its first version is current, or stale."""
    for _ in range(LOOKS):
        if any(each["freshness"] == wanted for each in stated(one, group)[:1]):
            return
    raise AssertionError(stated(one, group))


@pytest.mark.parametrize("accept", ["application/json", AGGREGATED])
def test_discovery_tells_of_all_in_the_order_of_their_priorities(both: list[Behind], accept: str) -> None:
    """Also of those that are not there, and of several versions."""
    more = [("v1beta1", 100, 10), ("v2", 100, 10), ("v3alpha1", 300, 20), ("other", 100, 10)]

    def asked(one: Behind) -> Any:
        for version, least, place in more:
            spec = {
                "group": "absent.test",
                "version": version,
                "groupPriorityMinimum": least,
                "versionPriority": place,
                "service": {"namespace": NAMESPACE, "name": "absent"},
            }
            made = {"metadata": {"name": f"{version}.absent.test"}, "spec": spec}
            assert one.server.ask("POST", API_SERVICES, made).code in (201, 409)
        for name in THERE:
            once(one, f"{name}.test", "Current")
        for _ in range(LOOKS):
            answer = one.server.ask("GET", "/apis", Accept=accept)
            if str(answer.body).count("absent.test") >= (11 if "groups" in answer.body else 1):
                break
        body = answer.body
        return answer.headers["Content-Type"], body["groups"] if "groups" in body else apart(body)

    told = alike(both, asked)[1]
    assert "absent.test" in str(told[20])


@pytest.mark.parametrize("path", ["good.test", "good.test/", "absent.test", "good.test/v7", "good.test/v7/x"])
def test_groups_of_others_are_told_of(both: list[Behind], path: str) -> None:
    def asked(one: Behind) -> Any:
        once(one, "good.test", "Current")
        return plain(one.server.ask("GET", f"/apis/{path}"))

    alike(both, asked)


def test_what_others_describe_is_listed_and_passed_on(both: list[Behind]) -> None:
    def asked(one: Behind) -> Any:
        once(one, "good.test", "Current")
        for _ in range(LOOKS):
            index = one.server.ask("GET", "/openapi/v3").body
            # Kubernetes calls it text.
            listed = (json.loads(index) if isinstance(index, str) else index)["paths"]
            if "apis/good.test/v1" in listed:
                break
        found = {name: place for name, place in listed.items() if "good.test" in name or "broken" in name}
        got = [
            one.server.ask("GET", f"/openapi/v3/apis/{name}")
            for name in ("good.test/v1", "good.test/v1?hash=A", "broken.test/v1", "good.test/v1/x")
        ]
        return found, [(each.code, each.body if each.code == 200 else None) for each in got]

    found, got = alike(both, asked)
    assert (list(found), [code for code, _ in got]) == (["apis/good.test/v1"], [200, 200, 404, 404])


def test_one_document_of_the_older_form_tells_of_all(both: list[Behind]) -> None:
    def asked(one: Behind) -> Any:
        once(one, "good.test", "Current")
        for _ in range(LOOKS):
            told = one.server.ask("GET", "/openapi/v2").body
            document = json.loads(told) if isinstance(told, str) else told
            if "/apis/good.test/v1/things" in document["paths"]:
                break
        named = [name for table in ("paths", "definitions", "parameters") for name in document[table]]
        # What is said of them Kubernetes writes here as its program holds it, and not as OpenAPI.
        return sorted(
            name for name in named if "good.test" in name or name.startswith(("test.", "pretty-test"))
        )

    assert len(alike(both, asked)) == 4


def test_the_index_has_the_paths_of_others(both: list[Behind]) -> None:
    def asked(one: Behind) -> Any:
        once(one, "good.test", "Current")
        return [path for path in one.server.ask("GET", "/").body["paths"] if "good.test" in path]

    assert len(alike(both, asked)) == 2


def test_kubectl_finds_a_resource_of_another_server_by_its_short_name(
    both: list[Behind], kubernetes_programs: Path
) -> None:
    def found(one: Behind, name: str) -> Any:
        once(one, "good.test", "Current")
        once(one, "older.test", "Current")
        command = [str(kubernetes_programs / "kubectl"), "--kubeconfig", str(one.server.kubeconfig)]
        command += ["--cache-dir", str(one.server.kubeconfig.parent / "cache")]
        got = [*command, "get", name, "x", "-o", "jsonpath={.path}"]
        return subprocess.run(got, check=True, capture_output=True, text=True).stdout

    for name, group in (("th", "good.test"), ("thing.v1.older.test", "older.test")):
        place = f"/apis/{group}/v1/namespaces/default/things/x"
        assert alike(both, partial(found, name=name)) == place


@pytest.mark.parametrize("name", GROUPS)
def test_who_is_not_there_is_unavailable(both: list[Behind], name: str) -> None:
    def asked(one: Behind) -> Any:
        condition(one.server, name)
        return [plain(one.server.ask("GET", f"/apis/{name}.test/v1/things"))]

    alike(both, asked)


JANE = {
    "Impersonate-User": "jane",
    "Impersonate-Group": "g1",
    "Impersonate-Uid": "u1",
    "Impersonate-Extra-Scopes": "a b",
    "Impersonate-Extra-Example.com%2fx": "y",
}
SPOOFED = {
    "X-Remote-User": "evil",
    "X-Remote-Group": "system:masters",
    "X-Remote-Extra-A": "b",
    "X-Remote-Uid": "7",
}


@pytest.mark.parametrize(
    ("method", "below", "body", "headers"),
    [
        ("GET", "", None, {}),
        ("GET", "/", None, {}),
        ("GET", "/namespaces/a/things/b?y=%20z&x=1", None, {}),
        ("GET", "/a//b/../c%2Fd%20e", None, {}),
        ("GET", "/%2e%2e/x", None, {}),
        ("GET", "/%ff", None, {}),
        ("POST", "/namespaces/a/things", {"a": 1}, {}),
        ("DELETE", "/namespaces/a/things/b", {"k": 1}, {}),
        ("GET", "/things", None, SPOOFED),
        ("GET", "/things", None, {"X-Forwarded-For": "192.0.2.9"}),
        ("GET", "/things", None, JANE),
        ("GET", "/things", None, {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}),
        ("GET", "/close", None, {}),
        ("GET", "/redirect", None, {}),
        ("GET", "/status-418", None, {}),
    ],
)
def test_requests_are_passed_on(
    both: list[Behind], method: str, below: str, body: Any, headers: dict[str, str]
) -> None:
    def asked(one: Behind) -> Any:
        assert condition(one.server, "good")["status"] == "True"
        return plain(one.server.ask(method, PLACE + below, body, **headers))

    alike(both, asked)


def test_those_who_may_are_told_of_by_name(both: list[Behind]) -> None:
    """With groups, uid and extra, as they impersonate."""
    roles = "/apis/rbac.authorization.k8s.io/v1"
    role = {
        "metadata": {"name": "good"},
        "rules": [{"apiGroups": ["good.test"], "resources": ["*"], "verbs": ["*"]}],
    }
    binding = {
        "metadata": {"name": "good"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "good"},
        "subjects": [{"kind": "User", "name": "jane"}],
    }

    def asked(one: Behind) -> Any:
        one.server.ask("POST", f"{roles}/clusterroles", role)
        one.server.ask("POST", f"{roles}/clusterrolebindings", binding)
        for _ in range(LOOKS):
            answer = one.server.ask("GET", f"{PLACE}/things", **JANE)
            if answer.code == 200:
                return plain(answer)
        raise AssertionError("jane may not")

    assert alike(both, asked)[2]["headers"]["X-Remote-User"] == ["jane"]


def published(one: Behind) -> Any:
    """Certificates by whose they are."""
    for _ in range(LOOKS):
        answer = one.server.ask("GET", BELIEVED)
        if answer.code == 200:
            whose = {
                one.server.ca.read_text(): "clients",
                one.front.ca.certificate.read_text(): "proxies",
            }
            meta = answer.body["metadata"]
            data = {key: whose.get(value, value) for key, value in answer.body["data"].items()}
            return meta.get("labels"), meta.get("annotations"), data
    raise AssertionError("nothing is published")


def test_whom_to_believe_is_published(both: list[Behind]) -> None:
    """Where API servers behind look for it, also once somebody has deleted it."""
    before = alike(both, published)
    for one in both:
        assert one.server.ask("DELETE", BELIEVED).code == 200
    assert alike(both, published) == before
    assert before[2]["client-ca-file"] == "clients"


def until(connection: socket.socket, what: bytes) -> bytes:
    got = b""
    while what not in got:
        piece = connection.recv(4096)
        assert piece, got
        got += piece
    return got


def opened(server: Server, target: str, *lines: str) -> socket.socket:
    plain = socket.create_connection((server.host, server.port), timeout=20)
    connection = server.tls.wrap_socket(plain, server_hostname=server.host)
    connection.sendall("\r\n".join([f"GET {target} HTTP/1.1", "Host: x", *lines, "", ""]).encode())
    return connection


def test_events_of_a_watch_come_as_they_happen(both: list[Behind]) -> None:
    def watched(one: Behind) -> None:
        with opened(one.server, f"{PLACE}/things?watch=true") as connection:
            until(connection, b'"n":1')
            one.good.go_on.set()
            until(connection, b'"n":2')

    alike(both, watched)


def test_upgrades_are_passed_on(both: list[Behind]) -> None:
    def upgraded(one: Behind) -> Any:
        lines = ("Connection: Upgrade", "Upgrade: echo/1", "X-Remote-User: evil")
        with opened(one.server, f"{PLACE}/namespaces/a/things/b/exec", *lines) as connection:
            head = until(connection, b"\r\n\r\n")
            connection.sendall(b"hello\n")
            until(connection, b"HELLO\n")
        with opened(one.server, f"{PLACE}/things/b", *lines[:2]) as connection:
            refused = until(connection, b"status code 200\n")
        return head.split(b"\r\n")[0][:12], b'["kubernetes-admin"]' in head, refused.split(b"\r\n")[0]

    assert alike(both, upgraded)[1]


@pytest.mark.parametrize("name", ["newer", "older"])
def test_who_answers_no_more_is_stale_and_then_gone(both: list[Behind], name: str) -> None:
    group, place = f"{name}.test", f"{API_SERVICES}/v1.{name}.test"

    def asked(one: Behind) -> Any:
        once(one, group, "Current")
        if name == "older":
            one.extensions[name].status = 500
        else:
            nowhere = {"ports": [{"name": "https", "port": 1}]}
            assert one.server.ask("PATCH", f"{SLICES}/{name}", nowhere, Content_Type=MERGE_PATCH).code == 200
        patch = {"spec": {"versionPriority": 11}}
        assert one.server.ask("PATCH", place, patch, Content_Type=MERGE_PATCH).code == 200
        once(one, group, "Stale")
        told = stated(one, group)
        one.server.ask("DELETE", place)
        for _ in range(LOOKS):
            gone = plain(one.server.ask("GET", f"/apis/{group}"))
            if gone[0] == 404 and not stated(one, group):
                return told, gone
        raise AssertionError(f"{name} is still there")

    alike(both, asked)
