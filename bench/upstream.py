"""Kubernetes' own API server and etcd, durable and filled like the `podling` of `server.py`, to measure
beside it.

`PODLING_UPSTREAM` names a directory whose `unpack DIR` makes the programs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from server import CONFIGS, LISTED, LISTED_CONFIGS, LISTED_PODS, PODS, pod

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from peer.control_plane import etcd_server, kubernetes
from peer.server import Asking

CREATED = 201


def unpacked(programs: Path) -> Path:
    subprocess.run(
        [Path(os.environ["PODLING_UPSTREAM"]) / "unpack", programs], check=True, capture_output=True
    )
    return programs


@contextmanager
def running_upstream(directory: Path) -> Iterator[tuple[str, list[int]]]:
    """URL, and process ids of API server and etcd."""
    programs = unpacked(directory / "programs")
    others = _children()
    with kubernetes(programs, directory, durable=True) as server:
        with server.asking() as asking:
            fill(asking)
        yield server.url, sorted(_children() - others)


class Etcd(NamedTuple):
    url: str
    pids: list[int]


@contextmanager
def etcd_at(programs: Path, directory: Path) -> Iterator[Etcd]:
    """A durable etcd of podling's own."""
    others = _children()
    with etcd_server(programs / "etcd", directory, durable=True) as url:
        yield Etcd(url, sorted(_children() - others))


def _children() -> set[int]:
    mine = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return {int(pid) for pid in mine.split()}


def fill(asking: Asking) -> None:
    """Two namespaces, a pod and a config map to ask for, and LISTED of each to list and to write to."""
    for namespace in ("default", "listed"):
        asking.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        asking.ask("POST", accounts, {"metadata": {"name": "default"}})
    _create(asking, PODS, pod({"name": "one"}))
    _create(asking, CONFIGS, b'{"metadata":{"name":"one"}}')
    for number in range(LISTED):
        _create(asking, LISTED_PODS, pod({"name": f"pod-{number}"}))
        _create(asking, LISTED_CONFIGS, b'{"metadata":{"name":"config-%d"}}' % number)


def _create(asking: Asking, path: str, body: bytes) -> None:
    answer = asking.ask("POST", path, body)
    assert answer.code == CREATED, answer.body
