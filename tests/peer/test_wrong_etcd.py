"""An etcd that is not the one that is meant is one sentence, and nothing in it is changed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from peer.control_plane import etcd_server
from podling.apiserver.store.server_leases import PREFIX
from podling.assemble.etcd import ENDPOINTS, FORMAT
from podling.storage import etcd
from podling.storage.etcd.connection import Connection
from podling.storage.migration import CLUSTER
from ports import free_port

KUBE_SYSTEM = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "of-b"}}
OF_A = "this data directory is of cluster of-a: nothing was changed"
LISTED = b'{"subsets":[{"addresses":[{"ip":"192.0.2.10"}],"ports":[{"name":"https","port":6443}]}]}'
OBJECT = json.dumps(KUBE_SYSTEM).encode()


@pytest.mark.parametrize(
    ("stored", "known", "why"),
    [
        (
            {CLUSTER: OBJECT},
            "of-a",
            "this etcd holds another cluster, of-b, and this data directory is of cluster of-a",
        ),
        ({}, "of-a", "this etcd holds no cluster and this data directory is of cluster of-a"),
        ({FORMAT: b"2"}, "", "a newer podling has stored this, in form 2; this one knows form 1"),
        (
            {f"{PREFIX}192.0.2.10": b"{}", ENDPOINTS: LISTED},
            "",
            "API servers of this cluster (192.0.2.10) have port 6443, which all share, and this one was",
        ),
    ],
    ids=["another-cluster", "empty", "newer", "another-port"],
)
def test_another_etcd_is_refused(
    kubernetes_programs: Path, tmp_path: Path, stored: dict[str, bytes], known: str, why: str
) -> None:
    (data := tmp_path / "data").mkdir()
    if known:
        (data / "etcd-cluster").write_text(known)
    with etcd_server(kubernetes_programs / "etcd", tmp_path, durable=False) as url:

        async def revision(*, fill: bool) -> int:
            storage = await etcd.open(Connection([url]))
            try:
                for key, value in stored.items() if fill else ():
                    await storage.create(key, value)
                return await storage.current()
            finally:
                await storage.close()

        before = asyncio.run(revision(fill=True))
        command = [
            sys.executable,
            "-m",
            "podling",
            "apiserver",
            "--data-dir",
            str(data),
            "--etcd-servers",
            url,
        ]
        command += ["--port", str(free_port()), "--service-cluster-ip-range", "10.96.0.0/16"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        *before_it, said = done.stderr.splitlines()
        assert done.returncode == 1 and said.startswith("Error: ") and why in said, done.stderr
        assert all("WARNING podling.process.watchdog" in line for line in before_it), done.stderr
        assert asyncio.run(revision(fill=False)) == before
