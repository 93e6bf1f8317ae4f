"""What tests of admission say to the server: pods, and quotas that have been counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

NAMESPACED = "/api/v1/namespaces/default"


@pytest.fixture
def pod_body() -> Callable[..., dict[str, Any]]:
    """A pod of one container; keywords are the resources of the container."""

    def make(
        name: str = "p", spec: dict[str, Any] | None = None, **resources: dict[str, str]
    ) -> dict[str, Any]:
        container = {"name": "app", "image": "i", "resources": resources}
        return {"metadata": {"name": name}, "spec": {"containers": [container], **(spec or {})}}

    return make
