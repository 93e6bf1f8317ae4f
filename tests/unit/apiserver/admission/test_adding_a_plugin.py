"""The document that says how to add an admission plugin is followed to the letter, and it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from unit.recipe import code_of, extended

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PLUGIN, PLACE = code_of("adding-an-admission-plugin.md")
MODULE, CHAIN = "podling.apiserver.admission.pods", "podling.apiserver.admission.chain"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def admitting(api: Conversation, monkeypatch: pytest.MonkeyPatch) -> Conversation:
    extended(monkeypatch, MODULE, appended=PLUGIN)
    chain = extended(
        monkeypatch,
        CHAIN,
        {
            "    DisruptionBudgets,\n": "    FixedTags,\n",
            '            ("", DisruptionBudgets(objects, clock)),\n': f"            {PLACE.strip()},\n",
        },
    )
    monkeypatch.setattr("podling.apiserver.assemble.built_in", chain.built_in)
    await api.restart()
    return api


@pytest.mark.parametrize(
    ("image", "status"),
    [
        ("app:1", 201),
        ("reg:5000/app:1", 201),
        ("app@sha256:" + "0" * 64, 201),
        ("app", 403),
        ("app:latest", 403),
    ],
)
async def test_it_is_asked_about_new_pods(
    admitting: Conversation, pod_body: Callable[..., dict[str, Any]], image: str, status: int
) -> None:
    containers = [{"name": "app", "image": image}]
    answer = await admitting.post(PODS, pod_body(spec={"containers": containers}))
    assert answer.status == status
    if status == 403:
        assert answer.message == f'pods "p" is forbidden: image "{image}" has no fixed tag'
