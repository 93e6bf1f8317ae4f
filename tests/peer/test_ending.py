"""R-SYS-8: what clients are told by an API server that was told to end, podling's and Kubernetes'."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from peer import control_plane
from peer.server import Server
from ports import free_port

MAPS = "/api/v1/namespaces/default/configmaps"
BODY = json.dumps({"metadata": {"name": "slow"}}).encode()
SLOW = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
    MAPS.encode(),
    len(BODY),
)
DELAYED, REFUSING = "--shutdown-delay-duration=2s", "--shutdown-send-retry-after=true"
GONE = "takes no connection"


def answered(server: Server, path: str) -> Any:
    """Over a connection of its own."""
    try:
        answer = server.ask("GET", path)
    except (OSError, HTTPException):
        return GONE
    told = {name: value for name, value in answer.headers.items() if name not in ("Date", "Audit-Id")}
    is_audited = bool(answer.headers.get("Audit-Id"))
    return (answer.code, told, is_audited, answer.body) if answer.code == 429 else answer.code


def story(server: Server, process: subprocess.Popen[bytes], flags: Sequence[str]) -> list[Any]:
    """What is told while the server ends, in order."""
    told: list[Any] = []
    with ExitStack() as stack:
        kept = stack.enter_context(server.asking())
        told.append(kept.ask("GET", MAPS).code)
        plain = stack.enter_context(socket.create_connection((server.host, server.port), timeout=30))
        slow = stack.enter_context(server.tls.wrap_socket(plain, server_hostname=server.host))
        slow.sendall(SLOW + BODY[:5])
        # It is to arrive before the signal.
        assert server.ask("GET", MAPS).code == 200
        process.send_signal(signal.SIGTERM)
        if DELAYED in flags:
            while kept.ask("GET", "/readyz").code != 500:
                pass
            told += [answered(server, path) for path in ("/readyz", "/livez", "/healthz", "/metrics", MAPS)]
            told.append(kept.ask("GET", MAPS).code)
        while answered(server, MAPS) == 200:
            pass
        told += [answered(server, path) for path in (MAPS, "/version", "/livez", "/readyz", "/metrics")]
        if REFUSING in flags:
            with server.asking() as itself:
                told.append(itself.ask("GET", MAPS, User_Agent="kube-apiserver/v1").code)
            told.append(kept.ask("GET", MAPS).code)
        slow.sendall(BODY[5:])
        with slow.makefile("rb") as answer:
            told.append(answer.read().split(b"\r\n")[0])
        while answered(server, "/livez") != GONE:
            pass
        told.append(process.wait(30))
    return told


@pytest.mark.parametrize("flags", [[], [DELAYED], [DELAYED, REFUSING]], ids=["at once", "late", "refusing"])
def test_a_server_that_ends_says_what_kubernetes_says(
    kubernetes_programs: Path, tmp_path: Path, flags: list[str]
) -> None:
    stories = []
    with control_plane.kubernetes_process(kubernetes_programs, tmp_path, *flags) as (server, process):
        control_plane.until_default(server)
        stories.append(story(server, process, flags))
    (own := tmp_path / "podling").mkdir()
    with control_plane.podling_process(own, free_port(), *flags) as (server, process):
        control_plane.until_default(server)
        stories.append(story(server, process, flags))
    kubernetes, podling = stories
    assert podling == kubernetes
    assert b"HTTP/1.1 201 Created" in podling
    assert (GONE in podling) == (REFUSING not in flags)


def test_of_two_servers_one_ends_and_a_client_that_heeds_it_sees_no_error(
    kubernetes_programs: Path, tmp_path: Path
) -> None:
    """It asks the other once it is refused, and its watch goes on there."""
    with ExitStack() as stack:
        (first, process), (second, _) = stack.enter_context(
            control_plane.two_podlings(kubernetes_programs, tmp_path, DELAYED, REFUSING)
        )
        asking = stack.enter_context(first.asking())
        plain = stack.enter_context(socket.create_connection((first.host, first.port), timeout=30))
        slow = stack.enter_context(first.tls.wrap_socket(plain, server_hostname=first.host))
        slow.sendall(SLOW + BODY[:5])
        made, refused = 0, 0
        watching = stack.enter_context(first.asking())
        watching.connection.request("GET", f"{MAPS}?watch=1&timeoutSeconds=60")
        watch = watching.connection.getresponse()
        process.send_signal(signal.SIGTERM)
        while not refused:
            answer = asking.ask("POST", MAPS, {"metadata": {"name": f"m{made}"}})
            made += answer.code == 201
            refused += answer.code == 429
            assert made + refused, answer
        assert answer.headers["Retry-After"] == "5" and made
        events = [json.loads(line) for line in watch]
        since = events[-1]["object"]["metadata"]["resourceVersion"]
        names = {event["object"]["metadata"]["name"] for event in events}
        slow.sendall(BODY[5:])
        with slow.makefile("rb") as end:
            assert end.read().startswith(b"HTTP/1.1 201 Created")
        assert process.wait(30) == 0
        with second.asking() as other:
            for event in other.watch(f"{MAPS}?watch=1&resourceVersion={since}"):
                names.add(event["metadata"]["name"])
                if event["metadata"]["name"] == "slow":
                    break
        assert names >= {f"m{n}" for n in range(made)} | {"slow"}
