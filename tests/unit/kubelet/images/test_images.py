"""Images: pull policies, shared pulls, pull secrets, and what is said of each."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from podling.client.events import EventRecorder
from podling.cri.grpc import cri_pb2 as pb
from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.hollow.script import HollowImage
from podling.cri.interface import RuntimeFault
from podling.kubelet.images.images import ImageRequest, Images, PulledImages
from podling.kubelet.images.pulls import Pulls
from podling.kubelet.pod.containers import StartError
from podling.model.time import SystemClock
from podling.model.types.container import Container
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod


class Said(EventRecorder):
    """Keeps what is said instead of writing it."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def normal(self, obj: Any, reason: str, message: str, *, field_path: str = "") -> None:
        self.events.append(f"{reason} {message}")

    warning = normal


class Scene:
    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        pulled: PulledImages | None = None,
        at_once: int = 0,
        **images: HollowImage,
    ) -> None:
        self.runtime = HollowRuntime({f"{name}:1": image for name, image in images.items()})
        self.said = Said()
        pulls = Pulls(self.runtime, SystemClock(), tasks, at_once)
        self.images = Images(self.runtime, self.said, SystemClock(), pulls, pulled)

    async def ensure(self, image: str, policy: str = "IfNotPresent", *secrets: dict[str, bytes]) -> str:
        pod = Pod(metadata=ObjectMeta(name="web"))
        container = Container(name="app", image=image, image_pull_policy=policy)
        return (await self.images.ensure(ImageRequest(pod, container, "spec.containers{app}", secrets))).id

    async def refused(self, image: str, policy: str = "IfNotPresent") -> tuple[str, str]:
        with pytest.raises(StartError) as error:
            await self.ensure(image, policy)
        return error.value.reason, error.value.message


async def test_a_present_image_is_looked_for_once_and_never_pulled() -> None:
    async with asyncio.TaskGroup() as tasks:
        scene = Scene(tasks, a=HollowImage(present=True))
        assert await scene.ensure("a:1") == await scene.ensure("a:1", "Never")
        assert scene.runtime.calls == []
        assert scene.said.events[0] == (
            'Pulled Container image "a:1" already present on machine and can be accessed by the pod'
        )
        scene.images.forget("a:1")
        await scene.runtime.remove_image("a:1")
        await scene.ensure("a:1")
        assert scene.runtime.calls[-1] == "pull a:1"


async def test_always_pulls_and_says_how_long_it_took() -> None:
    async with asyncio.TaskGroup() as tasks:
        scene = Scene(tasks, a=HollowImage(present=True))
        await scene.ensure("a:1", "Always")
        assert scene.said.events[0] == 'Pulling Pulling image "a:1"'
        assert scene.said.events[1].startswith('Pulled Successfully pulled image "a:1" in ')
        assert scene.said.events[1].endswith(" including waiting). Image size: 1 bytes.")


async def test_what_cannot_be_had_has_its_reason() -> None:
    async with asyncio.TaskGroup() as tasks:
        scene = Scene(tasks)
        never = 'Container image "a:1" is not present with pull policy of Never'
        assert await scene.refused("a:1", "Never") == ("ErrImageNeverPull", never)
        reason, message = await scene.refused("a:1")
        assert reason == "ErrImagePull"
        assert message.startswith("rpc error: code = NotFound desc = failed to pull")
        assert (await scene.refused("A B"))[0] == "InvalidImageName"


async def test_those_who_want_one_image_wait_for_one_pull_and_one_who_leaves_does_not_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asyncio.TaskGroup() as tasks:
        scene = Scene(tasks, a=HollowImage())
        go = asyncio.Event()
        pull = scene.runtime.pull_image

        async def slow(*args: Any) -> str:
            await go.wait()
            return await pull(*args)

        monkeypatch.setattr(scene.runtime, "pull_image", slow)
        waiting = [tasks.create_task(scene.ensure("a:1")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        go.set()
        assert await waiting[1] == await waiting[2]
        assert scene.runtime.calls == ["pull a:1"]


async def test_pull_secrets_are_tried_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.TaskGroup() as tasks:
        scene = Scene(tasks)
        tried: list[str] = []

        async def private(image: str, auth: pb.AuthConfig | None = None, sandbox: Any = None) -> str:
            tried.append(auth.username if auth else "nobody")
            if auth and auth.username == "joe":
                return "sha256:1"
            raise RuntimeFault("UNAUTHENTICATED", "no")

        monkeypatch.setattr(scene.runtime, "pull_image", private)
        secrets = secret_of("ann"), secret_of("joe")
        assert await scene.ensure("reg.io/a:1", "IfNotPresent", *secrets) == "sha256:1"
        assert tried == ["ann", "joe"]


def secret_of(user: str) -> dict[str, bytes]:
    auth = base64.b64encode(f"{user}:x".encode()).decode()
    return {".dockerconfigjson": json.dumps({"auths": {"reg.io": {"auth": auth}}}).encode()}


async def test_no_more_are_pulled_at_a_time_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.TaskGroup() as tasks:
        scene = Scene(tasks, at_once=2, a=HollowImage(), b=HollowImage(), c=HollowImage())
        pulling: set[str] = set()
        most, go = 0, asyncio.Event()
        pull = scene.runtime.pull_image

        async def slow(image: str, *more: Any) -> str:
            nonlocal most
            pulling.add(image)
            most = max(most, len(pulling))
            await go.wait()
            pulling.discard(image)
            return await pull(image, *more)

        monkeypatch.setattr(scene.runtime, "pull_image", slow)
        waiting = [tasks.create_task(scene.ensure(f"{name}:1")) for name in "abc"]
        while len(pulling) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*waiting)
        assert most == 2
        assert scene.runtime.calls == ["pull a:1", "pull b:1", "pull c:1"]


async def test_what_was_pulled_with_a_secret_is_not_for_who_has_none(tmp_path: Path) -> None:
    """Whoever has the image's secret uses what is there; others must show the registry theirs."""
    async with asyncio.TaskGroup() as tasks:
        name = "reg.io/a:1"
        images: dict[str, Any] = {"reg.io/a": HollowImage()}
        scene = Scene(tasks, PulledImages(tmp_path / "pulled.json"), **images)
        await scene.ensure(name, "IfNotPresent", secret_of("joe"))
        await scene.ensure(name, "IfNotPresent", secret_of("joe"))
        await scene.ensure(name, "Never", secret_of("ann"), secret_of("joe"))
        assert scene.runtime.calls == [f"pull {name}"]
        never = f'Container image "{name}" is not present with pull policy of Never'
        assert await scene.refused(name, "Never") == ("ErrImageNeverPull", never)
        await scene.ensure(name, "IfNotPresent", secret_of("ann"))
        assert scene.runtime.calls == [f"pull {name}", f"pull {name}"]
        await scene.ensure(name, "Never", secret_of("ann"))
