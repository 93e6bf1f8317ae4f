"""R-SYS-8: of two podlings on one etcd one ends, told to or killed: a client that tries again sees at most
one error, nothing that it was told is lost, and its watch goes on at the other without a gap.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from threading import Event

import pytest

from peer import control_plane
from peer.server import Server

MAPS = "/api/v1/namespaces/default/configmaps"
CLIENTS, BEFORE, AFTER, MOST = 4, 5, 20, 3000
"""Clients, and what each of them writes at least before the server is ended, after its first error, and at
most without any."""
FAILURES = (OSError, HTTPException)


class Client:
    """Writes to the first server, and to the other one from the first error on."""

    def __init__(self, name: str, servers: list[Server], warm: Event) -> None:
        self._name, self._servers, self._warm = name, servers, warm
        self.errors: list[str] = []
        self.made: list[str] = []

    def run(self) -> None:
        left = MOST
        while left:
            with self._servers[min(len(self.errors), 1)].asking() as asking:
                try:
                    while left:
                        name = f"{self._name}-{len(self.made)}"
                        code = asking.ask("POST", MAPS, {"metadata": {"name": name}}).code
                        # An answer that was lost may have been of a write that was made.
                        assert code == 201 or (code == 409 and self.errors), code
                        self.made.append(name)
                        left -= 1
                        if len(self.made) == BEFORE:
                            self._warm.set()
                except FAILURES as error:
                    self.errors.append(repr(error))
                    left = AFTER


def watched(servers: list[Server], since: str, last: str) -> Iterator[str]:
    """The names that a watch brings, which goes on at the other server where it was when it ended."""
    for server in servers:
        with server.asking() as asking:
            try:
                asking.connection.request("GET", f"{MAPS}?watch=1&resourceVersion={since}&timeoutSeconds=60")
                answer = asking.connection.getresponse()
                while line := answer.readline():
                    event = json.loads(line)
                    assert event["type"] == "ADDED", event
                    since = event["object"]["metadata"]["resourceVersion"]
                    yield event["object"]["metadata"]["name"]
                    if event["object"]["metadata"]["name"] == last:
                        return
            except FAILURES:
                continue


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "told"])
def test_a_client_that_tries_again_sees_one_error(
    kubernetes_programs: Path, tmp_path: Path, how: signal.Signals
) -> None:
    with control_plane.two_podlings(kubernetes_programs, tmp_path) as servers:
        both = [server for server, _ in servers]
        since = both[0].ask("GET", MAPS).body["metadata"]["resourceVersion"]
        warm = [Event() for _ in range(CLIENTS)]
        clients = [Client(f"c{n}", both, event) for n, event in enumerate(warm)]
        with ThreadPoolExecutor(CLIENTS + 1) as pool:
            watching = pool.submit(lambda: list(watched(both, since, "last")))
            running = [pool.submit(client.run) for client in clients]
            for event in warm:
                assert event.wait(30)
            servers[0][1].send_signal(how)
            for one in running:
                one.result(60)
            assert both[1].ask("POST", MAPS, {"metadata": {"name": "last"}}).code == 201
            names = watching.result(60)
        assert [len(client.errors) for client in clients] == [1] * CLIENTS, [c.errors for c in clients]
        made = [name for client in clients for name in client.made]
        standing = {one["metadata"]["name"] for one in both[1].ask("GET", MAPS).body["items"]}
        assert standing >= {*made, "last"}
        assert len(names) == len(set(names)) and set(names) >= {*made, "last"}
