"""The document that says how to add a subresource is followed to the letter, and it is served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.paths.discovery import Discovery
from unit.recipe import code_of, extended, written

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

ACTION, PLACE = code_of("adding-a-subresource.md")
PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "i"}]}}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    action = written(monkeypatch, "podling.apiserver.kinds.pods.notes", ACTION)
    head = "from podling.apiserver.kinds.pods.notes import NoteAction\n"
    name = "podling.apiserver.kinds.pods.pods"
    pods = extended(
        monkeypatch,
        name,
        {
            "from __future__ import annotations\n": head,
            "def _subresources(gates: Gates) -> Iterator[Subresource]:\n": f"    {PLACE}",
        },
    )
    assert action.NoteAction.name == "note"
    return [pods.Pods() if kind.resource.plural == "pods" else kind for kind in KINDS]


async def test_it_changes_its_object(api: Conversation, served: list[Any]) -> None:
    await api.restart(served)
    await api.post(PODS, POD)
    done = await api.post(f"{PODS}/p/note", {"metadata": {"name": "p"}, "text": "look"})
    assert done.status == 201
    annotations = (await api.get(f"{PODS}/p")).body["metadata"]["annotations"]
    assert annotations == {"toys.example.com/note": "2026-01-02T03:04:05Z look"}


async def test_it_refuses_what_is_wrong(api: Conversation, served: list[Any]) -> None:
    await api.restart(served)
    await api.post(PODS, POD)
    refused = await api.post(f"{PODS}/p/note", {"metadata": {"name": "p"}})
    assert refused.status == 422
    assert refused.message == 'Note "p" is invalid: text: Required value'
    assert (await api.get(f"{PODS}/p/note")).status == 405


def test_it_is_discovered(served: list[Any]) -> None:
    document = Discovery(served, "1.0.0")._documents["/api/v1"]
    [note] = [one for one in msgspec.json.decode(document)["resources"] if one["name"] == "pods/note"]
    assert (note["kind"], note["verbs"]) == ("Note", ["create"])
