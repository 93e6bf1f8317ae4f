"""`podling migrate-storage` to a real etcd, which kube-apiserver then serves, and back."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from peer import control_plane
from peer.test_same_etcd import differing, found, make, settled
from podling.cli.main import main
from podling.storage.etcd.connection import Connection
from podling.storage.etcd.store import open as open_store
from podling.storage.interface import MIGRATING


@pytest.fixture
def url(kubernetes_programs: Path, tmp_path: Path) -> Any:
    with control_plane.etcd_server(kubernetes_programs / "etcd", tmp_path, durable=False) as etcd:
        yield etcd


def migrate(directory: Path, to: str, url: str) -> tuple[int, str]:
    given = ["migrate-storage", "--data-dir", str(directory), "--to", to, "--etcd-servers", url]
    done = CliRunner().invoke(main, given)
    return done.exit_code, done.output


def wait_for(url: str, mark: bytes = b"") -> None:
    """Until an etcd answers; with a mark, make it one that a migration has begun to fill."""

    async def write() -> None:
        store = await open_store(Connection([url]))
        if mark:
            await store.create(MIGRATING, mark)
        await store.close()

    asyncio.run(write())


def test_objects_go_to_etcd_and_back(kubernetes_programs: Path, tmp_path: Path, url: str) -> None:
    ours, theirs, back = (tmp_path / name for name in ("ours", "theirs", "back"))
    for directory in (ours, theirs, back):
        directory.mkdir()
    with control_plane.podling(ours) as podling:
        made = make(podling, "a")
        code, said = migrate(ours, "etcd", url)
        assert (code, "podling is already running" in said) == (1, True), said
        uid = podling.ask("GET", "/api/v1/namespaces/kube-system").body["metadata"]["uid"]
    code, said = migrate(ours, "etcd", url)
    assert (code, "are in etcd and equal" in said) == (0, True), said

    # Before kube-apiserver makes objects of its own.
    code, said = migrate(back, "sqlite", url)
    assert (code, "are in sqlite and equal" in said) == (0, True), said
    with control_plane.podling(back) as podling:
        assert settled(found(podling, "a")) == settled(made)
        revision = int(podling.ask("GET", "/api/v1/namespaces").body["metadata"]["resourceVersion"])
        assert revision > 1_000_000_000

    code, said = migrate(ours, "etcd", url)
    assert (code, "the target is not empty" in said) == (1, True), said
    with control_plane.kubernetes(kubernetes_programs, theirs, etcd_url=url) as kubernetes:
        assert differing(settled(found(kubernetes, "a")), settled(made)) == {}
        assert kubernetes.ask("GET", "/api/v1/namespaces/kube-system").body["metadata"]["uid"] == uid
        third = tmp_path / "third"
        code, said = migrate(third, "sqlite", url)
        assert (code, "runs on this etcd: stop it" in said) == (1, True), said
        assert not (third / "state.db").exists()


def test_an_etcd_that_a_kube_apiserver_writes_to_is_left_alone(tmp_path: Path, url: str) -> None:
    """Those of tests do not say that they run, so it is said for one."""
    said_by = {
        "key": b64encode(b"/registry/masterleases/127.0.0.1").decode(),
        "value": b64encode(b"k8s").decode(),
    }
    wait_for(url)
    with urlopen(f"{url}/v3/kv/put", json.dumps(said_by).encode()):
        pass
    code, said = migrate(tmp_path / "data", "sqlite", url)
    assert (code, "an API server runs on this etcd: stop it" in said) == (1, True), said


def test_what_a_migration_has_begun_is_not_served(tmp_path: Path, url: str) -> None:
    wait_for(url, b"one")
    given = ["apiserver", "--data-dir", str(tmp_path / "data"), "--etcd-servers", url]
    done = CliRunner().invoke(main, given)
    assert (done.exit_code, "run it again, it goes on" in done.output) == (1, True), done.output
