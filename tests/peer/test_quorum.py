"""podling over an etcd of three members: it goes on without one of them, refuses writes without two, says
why, and goes on by itself when one of them is back. So it does when their databases are full.
"""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from peer import control_plane
from peer.members import Members
from peer.server import Server, until_listening, until_ready
from podling.storage import etcd
from podling.storage.etcd.connection import Connection
from podling.storage.interface import Storage, StorageClosedError
from ports import free_port

MAPS = "/api/v1/namespaces/default/configmaps"
ROOM, PIECE = 8 * 1024 * 1024, 512 * 1024
"""Bytes of a member's database, and of one object."""


def make(server: Server, name: str) -> tuple[int, str]:
    said = server.ask("POST", MAPS, {"metadata": {"name": name}})
    return said.code, str(said.body)


def test_a_cluster_that_loses_its_quorum(kubernetes_programs: Path, tmp_path: Path) -> None:
    with ExitStack() as ends:
        members = Members(kubernetes_programs / "etcd", tmp_path, ends)
        for number in range(3):
            members.start(number)
        flags = ["--etcd-servers", ",".join(members.urls)]
        podling = ends.enter_context(control_plane.podling(tmp_path, *flags))
        control_plane.until_default(podling)
        assert make(podling, "whole")[0] == 201

        # What is written in the second after the leader has gone is lost on its way to it, and nobody says
        # so: kube-apiserver's clients hear of it after 7 s, podling's after 5.
        first, second = followers(members)
        members.end(first)
        code, said = make(podling, "two-of-three")
        assert code == 201, said

        members.end(second)
        code, said = make(podling, "one-of-three")
        assert (code, "etcd" in said) == (500, True), said
        ready = podling.ask("GET", "/readyz")
        assert (ready.code, "[-]etcd failed" in str(ready.body)) == (500, True), ready.body

        until_ready(podling, members.start(second), tmp_path / "apiserver.log")
        assert make(podling, "again")[0] == 201
        names = {one["metadata"]["name"] for one in podling.ask("GET", MAPS).body["items"]}
        assert {"whole", "two-of-three", "again"} <= names


def followers(members: Members) -> list[int]:
    """Those that do not lead."""
    said = [told(url, "maintenance/status", {}) for url in members.urls]
    return [number for number, one in enumerate(said) if one["leader"] != one["header"]["member_id"]]


async def test_a_member_without_a_leader_is_not_followed(kubernetes_programs: Path, tmp_path: Path) -> None:
    """It answers, and would not tell what the others agree on meanwhile."""
    with ExitStack() as ends:
        fast = {"heartbeat-interval": 20, "election-timeout": 200}
        members = Members(kubernetes_programs / "etcd", tmp_path, ends, **fast)
        processes = [members.start(number) for number in range(3)]
        port = urlsplit(members.urls[0]).port or 0
        until_listening(control_plane.HOST, port, processes[0], tmp_path / "m0.log")
        storage = await etcd.open(Connection(members.urls[:1]))
        for other in processes[1:]:
            other.send_signal(signal.SIGSTOP)
        async with asyncio.timeout(30):
            while "etcd is not followed" not in await fault_of(storage):
                pass
        for other in processes[1:]:
            other.send_signal(signal.SIGCONT)
        async with asyncio.timeout(30):
            await storage.create("/registry/configmaps/default/after", b"{}")
        await storage.close()


async def fault_of(storage: Storage) -> str:
    try:
        await storage.probe()
    except StorageClosedError as error:
        return str(error)
    return ""


def told(url: str, what: str, body: dict[str, object]) -> Any:
    """Have a member do what its administrator wants; what it answers."""
    with urlopen(Request(f"{url}/v3/{what}", json.dumps(body).encode()), timeout=30) as answer:
        return json.load(answer)


def test_a_cluster_whose_databases_are_full(kubernetes_programs: Path, tmp_path: Path) -> None:
    """etcd takes no writes then, until there is room and somebody says so."""
    with ExitStack() as ends:
        members = Members(kubernetes_programs / "etcd", tmp_path, ends, **{"quota-backend-bytes": ROOM})
        for number in range(3):
            members.start(number)
        flags = ("--etcd-servers", ",".join(members.urls))
        podling, process = ends.enter_context(control_plane.podling_process(tmp_path, free_port(), *flags))
        control_plane.until_default(podling)
        code, said, count = 201, "", 0
        while code == 201:
            answer = podling.ask(
                "POST", MAPS, {"metadata": {"name": f"large-{count}"}, "data": {"is": "x" * PIECE}}
            )
            code, said, count = answer.code, str(answer.body), count + 1
        assert (code, "database space exceeded" in said, count > 1) == (500, True, True), said
        ready = podling.ask("GET", "/readyz")
        assert (ready.code, "[-]etcd failed" in str(ready.body)) == (500, True), ready.body
        # It is read, and what is deleted makes room.
        for number in range(count - 1):
            assert podling.ask("GET", f"{MAPS}/large-{number}").code == 200
            assert podling.ask("DELETE", f"{MAPS}/large-{number}").code == 200
        revision = podling.ask("GET", MAPS).body["metadata"]["resourceVersion"]
        told(members.urls[0], "kv/compaction", {"revision": revision, "physical": True})
        for url in members.urls:
            told(url, "maintenance/defragment", {})
        alarms = told(members.urls[0], "maintenance/alarm", {"action": "GET"})["alarms"]
        for one in alarms:
            told(members.urls[0], "maintenance/alarm", {**one, "action": "DEACTIVATE"})
        until_ready(podling, process, tmp_path / "apiserver.log")
        assert make(podling, "again")[0] == 201
