"""R-SYS-1: what is handed on to the node of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def pod(api: Conversation) -> Any:
    spec = {"containers": [{"name": "c", "image": "busybox"}], "nodeName": "n"}
    return (await api.post(PODS, {"metadata": {"name": "p"}, "spec": spec})).body


async def test_streams_are_handed_on(api: Conversation, pod: Any) -> None:
    assert (await api.get(f"{PODS}/p/log")).body == b"log of p"
    assert (await api.post(f"{PODS}/p/exec?command=ls", None)).body == b"exec of p"
    assert (await api.get(f"{PODS}/p/portforward", Accept="*/*")).body == b"portforward of p"


async def test_refusals(api: Conversation, pod: Any) -> None:
    assert (await api.get(f"{PODS}/q/log")).status == 404
    assert (await api.delete(f"{PODS}/p/exec")).status == 405
    assert (await api.post(f"{PODS}/p/log", None)).status == 405
