"""What is long is decided beside the loop, in all its steps; what is short at once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from podling.apiserver.kinds.config import ConfigMaps
from podling.apiserver.request.aside import SHORT

CONFIGS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize("long", [True, False])
async def test_where_it_is_decided(api: Any, monkeypatch: pytest.MonkeyPatch, long: bool) -> None:
    beside: list[bool] = []

    def noting(name: str) -> None:
        work = getattr(ConfigMaps, name)

        def noted(*arguments: Any) -> Any:
            beside.append(threading.current_thread() is not threading.main_thread())
            return work(*arguments)

        monkeypatch.setattr(ConfigMaps, name, noted)

    for name in ("default", "prepare_create", "validate_create", "prepare_update", "validate_update"):
        noting(name)
    config = {"metadata": {"name": "a"}, "data": {"k": "x" * (SHORT if long else 1)}}
    assert (await api.post(CONFIGS, config)).status == 201
    assert (
        await api.put(f"{CONFIGS}/a", {**config, "metadata": {"name": "a", "labels": {"b": "c"}}})
    ).status == 200
    assert (await api.patch(f"{CONFIGS}/a", {"metadata": {"labels": {"b": "d"}}})).status == 200
    assert len(beside) == 9 and set(beside) == {long}
