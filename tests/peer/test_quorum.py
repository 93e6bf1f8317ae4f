"""podling over an etcd of three members: it goes on without one of them, refuses writes without two, says
why, and goes on by itself when one of them is back.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from peer import control_plane
from peer.members import Members
from peer.server import Server, until_ready

MAPS = "/api/v1/namespaces/default/configmaps"


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

        members.end(0)
        assert make(podling, "two-of-three")[0] == 201

        members.end(1)
        code, said = make(podling, "one-of-three")
        assert (code, "etcd" in said) == (500, True), said
        ready = podling.ask("GET", "/readyz")
        assert (ready.code, "[-]etcd failed" in str(ready.body)) == (500, True), ready.body

        until_ready(podling, members.start(1), tmp_path / "apiserver.log")
        assert make(podling, "again")[0] == 201
        names = {one["metadata"]["name"] for one in podling.ask("GET", MAPS).body["items"]}
        assert {"whole", "two-of-three", "again"} <= names
