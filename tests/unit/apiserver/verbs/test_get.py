"""R-SYS-1: reading one object."""

from __future__ import annotations

from typing import Any

CONFIGS = "/api/v1/namespaces/default/configmaps"


async def test_what_is_created_is_read_back(api: Any) -> None:
    created = await api.post(CONFIGS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert created.status == 201
    read = await api.get(f"{CONFIGS}/a")
    assert (read.status, read.body) == (200, created.body)
    meta = read.body["metadata"]
    assert meta["creationTimestamp"] == "2026-01-02T03:04:05Z"
    assert meta["namespace"] == "default" and len(meta["uid"]) == 36 and int(meta["resourceVersion"]) > 0
    assert list(read.body) == ["kind", "apiVersion", "metadata", "data"]


async def test_what_is_not_there(api: Any) -> None:
    answer = await api.get(f"{CONFIGS}/a")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "a" not found',
        "reason": "NotFound",
        "details": {"name": "a", "kind": "configmaps"},
        "code": 404,
    }
    assert answer.status == 404
