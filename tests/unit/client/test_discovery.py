"""What a server says it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from podling.client.client import Client, served

if TYPE_CHECKING:
    from unit.client.conftest import ScriptedServer


def said(data: Any) -> Any:
    return 200, {}, msgspec.json.encode(data)


async def test_resources_in_the_versions_their_groups_prefer(scripted: type[ScriptedServer]) -> None:
    preferred = {"groupVersion": "x.io/v2", "version": "v2"}
    groups = {"groups": [{"name": "x.io", "versions": [preferred], "preferredVersion": preferred}]}
    core = {
        "resources": [
            {"name": "pods", "namespaced": True, "verbs": ["list", "get"]},
            {"name": "pods/status", "namespaced": True, "verbs": ["get"]},
        ]
    }
    gadgets = {"resources": [{"name": "gadgets", "namespaced": False, "verbs": ["list"]}]}
    server = scripted([said(groups), said(core), said(gadgets)], lambda: None)
    pods, others = await served(Client(server))
    assert (pods.path("ns"), pods.qualified) == ("/api/v1/namespaces/ns/pods", "pods")
    assert pods.verbs == {"list", "get"}
    assert (others.path(), others.qualified) == ("/apis/x.io/v2/gadgets", "gadgets.x.io")
