"""Static pods: files on the node, their workers, and their mirrors at the API server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from podling.cri.hollow.script import HollowImage
from podling.model.types.node import Node as NodeObject
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

MIRROR = "kubernetes.io/config.mirror"
HASH = "kubernetes.io/config.hash"


def manifest(image: str = "app:1", **spec: Any) -> str:
    containers = [{"name": "app", "image": image}]
    spec = {"terminationGracePeriodSeconds": 5, "containers": containers, **spec}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})


async def begin(node: Node, **files: str) -> Path:
    """A kubelet starts on a directory with these manifests."""
    directory: Path = node.config.root_dir.parent / "manifests"
    directory.mkdir()
    for name, text in files.items():
        (directory / f"{name}.yaml").write_text(text)
    node.config = replace(node.config, pod_manifest_path=directory)
    await node.boot()
    return directory


def calls(node: Node, *verbs: str) -> list[str]:
    return [call for call in node.runtime.calls if call.split()[0] in verbs]


def test_a_file_is_run_and_mirrored(play: Play) -> None:
    async def story(node: Node) -> None:
        await begin(node, web=manifest())
        mirror = await node.until("web-n1", node.is_ready)
        meta = mirror.metadata
        owner = await node.client.get(NodeObject, "n1")
        assert [(o.kind, o.name, o.uid, o.controller) for o in meta.owner_references] == [
            ("Node", "n1", owner.metadata.uid, True)
        ]
        assert meta.annotations[MIRROR] == meta.annotations[HASH]
        assert meta.annotations["kubernetes.io/config.source"] == "file"
        assert mirror.spec.node_name == "n1"
        assert ("Exists", "NoExecute") in [(t.operator, t.effect) for t in mirror.spec.tolerations]
        known = node.kubelet.pod("default", "web-n1")
        assert known and known.metadata.uid == meta.annotations[HASH]

    play(story, boot=False)


def test_a_mirror_that_is_deleted_comes_back_and_its_pod_runs_on(play: Play) -> None:
    async def story(node: Node) -> None:
        await begin(node, web=manifest())
        first = await node.until("web-n1", node.is_ready)
        before = list(node.runtime.calls)
        await node.client.delete(Pod, "web-n1", "default")
        again = await node.until(
            "web-n1", lambda p: p.metadata.uid != first.metadata.uid and node.is_ready(p)
        )
        assert again.metadata.annotations == first.metadata.annotations
        assert again.status.container_statuses == first.status.container_statuses
        assert node.runtime.calls == before

    play(story, boot=False)


def test_a_kubelet_that_comes_back_knows_its_pods(play: Play) -> None:
    """R-INIT-11"""

    async def story(node: Node) -> None:
        await begin(node, web=manifest())
        first = await node.until("web-n1", node.is_ready)
        before = list(node.runtime.calls)
        await node.crash()
        await node.boot()
        await asyncio.sleep(60)
        assert node.pod("web-n1").metadata.uid == first.metadata.uid
        assert node.runtime.calls == before

    play(story, boot=False)


def test_what_has_no_file_any_more_ends_and_its_mirror_goes(play: Play) -> None:
    async def story(node: Node) -> None:
        directory = await begin(node, web=manifest())
        await node.until("web-n1", node.is_ready)
        await node.crash()
        (directory / "web.yaml").unlink()
        await node.boot()
        await node.until_gone("web-n1")
        assert any(call.startswith("remove") for call in node.runtime.calls)
        assert node.kubelet.pod("default", "web-n1") is None

    play(story, boot=False)


def test_a_changed_file_is_another_pod_that_waits_for_the_first(play: Play) -> None:
    async def story(node: Node) -> None:
        directory = await begin(node, web=manifest())
        first = await node.until("web-n1", node.is_ready)
        (directory / "web.yaml").write_text(manifest(image="other:1"))
        second = await node.until(
            "web-n1", lambda p: p.spec.containers[0].image == "other:1" and node.is_ready(p)
        )
        assert second.metadata.annotations[HASH] != first.metadata.annotations[HASH]
        assert calls(node, "run", "remove") == [
            "run default/web-n1#0",
            "remove default/web-n1#0",
            "run default/web-n1#0",
        ]

    play(story, boot=False, other=HollowImage(present=True))
