"""Pods to be judged: a valid one, changed in the place a test is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.patch.merge_patch import merge_patch
from podling.apiserver.registry.pods import Pods
from podling.model.json import from_data
from podling.model.pod import Pod

VALID = {
    "metadata": {
        "name": "p",
        "namespace": "default",
        "uid": "u",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {"containers": [{"name": "app", "image": "busybox"}]},
}

MakePod = Callable[..., Pod]


@pytest.fixture
def make_pod() -> MakePod:
    """Makes a defaulted pod; keywords are fields of the spec, `metadata` and `status` those of the others."""

    def make(
        metadata: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **spec: Any
    ) -> Pod:
        changes = {"metadata": metadata or {}, "status": status or {}, "spec": spec}
        pod = from_data(merge_patch(VALID, changes), Pod)
        Pods().default(pod)
        return pod

    return make
