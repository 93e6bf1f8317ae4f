"""R-SYS-1: what a writer sends through a subresource is validated like the object itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

NODE = "/api/v1/nodes/n"


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"a b": "c"}}, "metadata.labels"),
        ({"annotations": {"a b": "c"}}, "metadata.annotations"),
        ({"finalizers": ["nothing"]}, "metadata.finalizers[0]"),
    ],
)
async def test_metadata_through_a_status(api: Conversation, metadata: dict[str, Any], field: str) -> None:
    await api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    answer = await api.patch(f"{NODE}/status", {"metadata": metadata}, "merge-patch")
    assert answer.status == 422 and answer.body["details"]["causes"][0]["field"] == field
