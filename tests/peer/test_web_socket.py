"""R-SYS-1: logs and watches over a WebSocket, as browsers ask for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from peer import kubelet
from peer.masks import Masks
from peer.server import Server
from peer.web_socket import speak

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
SPEC = {"containers": [{"name": "c", "image": "i"}]}


@pytest.fixture(scope="module")
def servers(
    kubernetes: Server, podling: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    """Both, with a pod that has a log and one on no node."""
    with kubelet.answering(tmp_path_factory.mktemp("kubelet")) as port:
        address = {"type": "InternalIP", "address": "127.0.0.1"}
        status = {"addresses": [address], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
        for server in (kubernetes, podling):
            server.ask("POST", "/api/v1/nodes", {"metadata": {"name": "logs"}, "status": status})
            accounts = "/api/v1/namespaces/default/serviceaccounts"
            server.ask("POST", accounts, {"metadata": {"name": "default"}})
            server.ask("POST", MAPS, {"metadata": {"name": "watched"}, "data": {"a": "<&>"}})
            for name, on in (("placed", {"nodeName": "logs"}), ("nowhere", {})):
                made = server.ask("POST", PODS, {"metadata": {"name": name}, "spec": {**SPEC, **on}})
                assert made.code == 201, made.body
        yield kubernetes, podling


@pytest.mark.parametrize(
    "offered",
    [
        [],
        ["binary.k8s.io"],
        ["base64.binary.k8s.io"],
        ["unknown", "base64.binary.k8s.io"],
        ["base64.binary.k8s.io", "binary.k8s.io"],
    ],
    ids="+".join,
)
def test_a_log_comes_in_messages(servers: tuple[Server, Server], offered: list[str]) -> None:
    theirs, ours = (speak(server, f"{PODS}/placed/log", offered) for server in servers)
    assert ours == theirs
    assert (ours.code, ours.ended, len(ours.messages)) == (101, 1000, 2)


@pytest.mark.parametrize(
    ("what", "offered", "code"),
    [
        ("placed/log", ["unknown"], 403),
        ("nowhere/log", [], 204),
        ("none/log", [], 404),
        ("placed/log?container=none", [], 400),
        ("placed/log?tailLines=-1", [], 422),
    ],
)
def test_what_has_no_log_is_refused_alike(
    servers: tuple[Server, Server], what: str, offered: list[str], code: int
) -> None:
    theirs, ours = (speak(server, f"{PODS}/{what}", offered) for server in servers)
    assert [ours._replace(body=b""), _read(ours.body)] == [theirs._replace(body=b""), _read(theirs.body)]
    assert ours.code == code


def test_a_pod_on_no_node_has_no_content(servers: tuple[Server, Server]) -> None:
    theirs, ours = (server.ask("GET", f"{PODS}/nowhere/log") for server in servers)
    assert (ours.code, ours.body) == (theirs.code, theirs.body) == (204, None)
    headers = [
        {name: said.headers.get(name) for name in ("Content-Type", "Content-Length")}
        for said in (theirs, ours)
    ]
    assert headers[0] == headers[1]


@pytest.mark.parametrize("offered", [[], ["binary.k8s.io"], ["any", "other"]], ids="+".join)
def test_a_watch_comes_in_messages(servers: tuple[Server, Server], offered: list[str]) -> None:
    watch = f"{MAPS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dwatched"
    theirs, ours = (speak(server, watch, offered, enough=1) for server in servers)
    assert ours._replace(messages=[]) == theirs._replace(messages=[])
    assert [type(message) for message in ours.messages] == [type(message) for message in theirs.messages]
    assert [str(one)[-2:] for one in ours.messages] == [str(one)[-2:] for one in theirs.messages]
    events = [[Masks().masked(json.loads(message)) for message in said.messages] for said in (theirs, ours)]
    assert events[0] == events[1]


def _read(body: bytes) -> Any:
    return json.loads(body) if body else None
