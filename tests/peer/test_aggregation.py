"""R-SYS-8: requests for the groups of other API servers reach these as through Kubernetes' aggregator."""

from __future__ import annotations

import base64
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from peer import control_plane
from peer.extension import Extension, serving
from peer.server import Answer, Server
from podling.machine.pki import Authority
from podling.machine.start import machine_address

NAMESPACE = "extensions"
GROUPS = ("good", "wrong-ca", "other-name", "broken", "refuses", "absent", "no-port", "no-slices", "unready")
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
            good, broken = (
                running.enter_context(
                    serving(Extension(group), HERE, pair.certificate, pair.key, front.ca.certificate)
                )
                for group in ("good.test", "broken.test")
            )
            broken.status = 500
            set_up(server, good, broken, authority, front)
            made.append(Behind(server, good, front))
        yield made


def set_up(
    server: Server, good: Extension, broken: Extension, authority: Authority, other: Authority
) -> None:
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for name in GROUPS:
        port = {"broken": broken.port, "refuses": 1}.get(name, good.port)
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
    assert (told["status"] == "True") == (name == "good")


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
