"""The health paths, in Kubernetes' words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from podling.apiserver.paths import health
from podling.apiserver.paths.health import Checks, Unhealthy, ping, report
from podling.storage.interface import StorageClosedError

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation


async def fails() -> None:
    raise Unhealthy("they are not loaded")


async def hangs() -> None:
    await asyncio.Event().wait()


PASSES: Checks = {"ping": ping}
FAILS: Checks = {"ping": ping, "caches": fails}


@pytest.mark.parametrize(
    ("checks", "verbose", "exclude", "status", "body"),
    [
        (PASSES, False, [], 200, "ok"),
        (PASSES, True, [], 200, "[+]ping ok\nreadyz check passed\n"),
        (FAILS, False, [], 500, "[+]ping ok\n[-]caches failed: reason withheld\nreadyz check failed\n"),
        (FAILS, False, ["caches"], 200, "ok"),
        (FAILS, True, ["caches"], 200, "[+]ping ok\n[+]caches excluded: ok\nreadyz check passed\n"),
        (
            FAILS,
            True,
            ["b,caches", "a"],
            200,
            "[+]ping ok\n[+]caches excluded: ok\n"
            'warn: some health checks cannot be excluded: no matches for "a", "b"\nreadyz check passed\n',
        ),
    ],
)
async def test_reports(checks: Checks, verbose: bool, exclude: list[str], status: int, body: str) -> None:
    response = await report("readyz", checks, verbose=verbose, exclude=exclude)
    assert (response.status, response.body) == (status, body.encode())


async def test_a_check_that_hangs_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LONGEST_CHECK", 0.0)
    assert (await report("livez", {"etcd": hangs}, verbose=False)).status == 500


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/etcd", "/livez/ping"])
async def test_a_server_that_runs_is_healthy(api: Conversation, path: str) -> None:
    assert (await api.get(path)).body == b"ok"


async def test_strangers_may_ask(api: Conversation) -> None:
    await api.server.have_default_roles()
    api.user = None
    verbose = await api.get("/readyz?verbose")
    assert verbose.body.decode().splitlines() == [
        "[+]ping ok",
        "[+]log ok",
        "[+]etcd ok",
        "[+]poststarthook/generic-apiserver-start-informers ok",
        "[+]etcd-readiness ok",
        "[+]informer-sync ok",
        "[+]shutdown ok",
        "readyz check passed",
    ]
    assert verbose.headers["X-Content-Type-Options"] == "nosniff"


async def test_storage_that_fails_is_neither_live_nor_ready(
    api: Conversation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def probe() -> None:
        raise StorageClosedError("the disk is gone")

    monkeypatch.setattr(api.storage, "probe", probe)
    for path in ("/livez", "/readyz", "/healthz"):
        answer = await api.get(path)
        assert answer.status == 500 and b"[-]etcd failed: reason withheld" in answer.body
        assert b"disk" not in answer.body and "etcd: the disk is gone" in caplog.text
    one = await api.get("/livez/etcd")
    assert (one.status, one.body) == (500, b"internal server error: the disk is gone\n")
    assert (await api.get("/livez?exclude=etcd")).status == 200


async def test_a_server_that_ends_is_live_but_not_ready(api: Conversation) -> None:
    api.server.drain()
    assert (await api.get("/livez")).status == 200
    assert (await api.get("/readyz")).status == 500
    assert (await api.get("/readyz/shutdown")).body == b"internal server error: process is shutting down\n"
    assert (await api.get("/readyz?exclude=shutdown")).status == 200


async def test_a_check_that_is_not_there_is_no_path(api: Conversation) -> None:
    assert (await api.get("/readyz/nothing")).status == 404
