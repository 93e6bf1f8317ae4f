"""Services to be judged: a plain one, changed in the place a test is about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.kinds.services import Services
from podling.apiserver.patch.parse import merge_patch
from podling.model.codec.json import from_data
from podling.model.types.service import Service

PLAIN = {
    "metadata": {"name": "s", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"ports": [{"port": 80}]},
}

MakeService = Callable[..., Service]


@pytest.fixture
def make_service() -> MakeService:
    """Makes a service as a writer sends it; keywords are fields of the spec."""

    def make(annotations: dict[str, str] | None = None, **spec: Any) -> Service:
        changes = {"metadata": {"annotations": annotations or {}}, "spec": spec}
        service = from_data(merge_patch(PLAIN, changes), Service)
        Services().default(service)
        Services().prepare_create(service, datetime(2026, 1, 1, tzinfo=UTC))
        return service

    return make
