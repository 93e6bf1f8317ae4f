"""Sees to it that a container's image is on the node: pull policies, pull secrets, pulls shared by all who
wait.

Whether and when to try again is the planner's decision; here one attempt is made and its failure named. What
was once seen to be present is remembered, so that a pod of known images asks the runtime nothing; when the
runtime turns out to have lost one (creating a container says NOT_FOUND), `forget` makes the next attempt look
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podling.client.events import EventRecorder
from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.pod.faults import StartError, rpc_text
from podling.kubelet.pulling.credentials import credentials_for
from podling.kubelet.pulling.image_reference import InvalidReference, with_default_tag
from podling.kubelet.reporting.durations import milliseconds_text
from podling.kubelet.runtime_config.security import ImageUser
from podling.model.container import EphemeralContainerCommon
from podling.model.pod import Pod
from podling.model.time import Clock

_NOBODY_NAMED = ImageUser()
ALWAYS = "Always"
NEVER = "Never"


@dataclass(frozen=True, slots=True)
class PresentImage:
    """`id` is what containers are created with; `reference` is how their status names it; `user` is whom the
    image says its processes run as."""

    id: str
    reference: str = ""
    user: ImageUser = _NOBODY_NAMED


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """Whose image it is: events are about `pod` at `field_path`; `secrets` are the decoded data of its pull
    secrets."""

    pod: Pod
    container: EphemeralContainerCommon
    field_path: str
    secrets: Sequence[Mapping[str, bytes]] = ()
    sandbox_config: pb.PodSandboxConfig | None = None


class Images:
    """The node's images. `tasks` owns the pulls: one goes on for the others when the pod that began it is
    gone."""

    def __init__(
        self, runtime: Runtime, events: EventRecorder, clock: Clock, tasks: asyncio.TaskGroup
    ) -> None:
        self._runtime = runtime
        self._events = events
        self._clock = clock
        self._tasks = tasks
        self._present: dict[str, PresentImage] = {}
        self._pulls: dict[tuple[str, bytes], asyncio.Future[str]] = {}

    async def ensure(self, request: ImageRequest) -> PresentImage:
        """Raises StartError with the reason the container's status shows."""
        container = request.container
        try:
            reference = with_default_tag(container.image)
        except InvalidReference as error:
            self._warn(request, "InspectFailed", str(error))
            raise StartError("InvalidImageName", str(error)) from error
        image = await self._find(request, reference)
        if image is not None and container.image_pull_policy != ALWAYS:
            present = "already present on machine and can be accessed by the pod"
            self._say(request, "Pulled", f'Container image "{container.image}" {present}')
            return image
        if container.image_pull_policy == NEVER:
            text = f'Container image "{container.image}" is not present with pull policy of Never'
            self._warn(request, "ErrImageNeverPull", text)
            raise StartError("ErrImageNeverPull", text)
        return await self._pull(request, reference)

    def forget(self, image: str) -> None:
        """Look again next time."""
        self._present = {
            name: found for name, found in self._present.items() if image not in (name, found.id)
        }

    def forget_all(self) -> None:
        self._present.clear()

    async def _find(self, request: ImageRequest, reference: str) -> PresentImage | None:
        if found := self._present.get(reference):
            return found
        try:
            image = await self._runtime.image_status(reference)
        except RuntimeFault as fault:
            text = f'Failed to inspect image "{request.container.image}": {rpc_text(fault)}'
            self._warn(request, "InspectFailed", text)
            raise StartError("ImageInspectError", text) from fault
        if image is None:
            return None
        return self._remember(reference, image)

    def _remember(self, reference: str, image: pb.Image) -> PresentImage:
        user = ImageUser(image.uid.value if image.HasField("uid") else None, image.username)
        present = self._present[reference] = PresentImage(
            image.id, next(iter(image.repo_digests), image.id), user
        )
        return present

    async def _pull(self, request: ImageRequest, reference: str) -> PresentImage:
        name = request.container.image
        self._say(request, "Pulling", f'Pulling image "{name}"')
        began = self._clock.now()
        try:
            pulled = await self._shared_pull(request, reference)
            image = await self._runtime.image_status(reference)
        except RuntimeFault as fault:
            self._warn(request, "Failed", f'Failed to pull image "{name}": {rpc_text(fault)}')
            raise StartError("ErrImagePull", rpc_text(fault)) from fault
        took = milliseconds_text(self._clock.now() - began)
        text = f'Successfully pulled image "{name}" in {took} ({took} including waiting).'
        self._say(request, "Pulled", f"{text} Image size: {image.size if image else 0} bytes.")
        return self._remember(reference, image) if image else PresentImage(pulled, pulled)

    async def _shared_pull(self, request: ImageRequest, reference: str) -> str:
        """One pull at a time of one image with the same credentials; whoever asks meanwhile waits for it."""
        credentials = credentials_for(reference, request.secrets)
        key = reference, b"".join(auth.SerializeToString(deterministic=True) for auth in credentials)
        pull = self._pulls.get(key)
        if pull is None:
            pull = self._pulls[key] = asyncio.get_running_loop().create_future()
            self._tasks.create_task(self._run_pull(key, credentials, request.sandbox_config))
        return await asyncio.shield(pull)

    async def _run_pull(
        self, key: tuple[str, bytes], credentials: list[pb.AuthConfig], sandbox: pb.PodSandboxConfig | None
    ) -> None:
        pull = self._pulls[key]
        try:
            image = await self._try_credentials(key[0], credentials, sandbox)
        except RuntimeFault as fault:
            pull.set_exception(fault)
            # Whoever waited may be gone; the fault was still seen.
            pull.exception()
        except asyncio.CancelledError:
            pull.cancel()
            raise
        else:
            pull.set_result(image)
        finally:
            del self._pulls[key]

    async def _try_credentials(
        self, reference: str, credentials: list[pb.AuthConfig], sandbox: pb.PodSandboxConfig | None
    ) -> str:
        for auth in credentials[:-1]:
            try:
                return await self._runtime.pull_image(reference, auth, sandbox)
            except RuntimeFault:
                continue
        return await self._runtime.pull_image(reference, credentials[-1] if credentials else None, sandbox)

    def _say(self, request: ImageRequest, reason: str, message: str) -> None:
        self._events.normal(request.pod, reason, message, field_path=request.field_path)

    def _warn(self, request: ImageRequest, reason: str, message: str) -> None:
        self._events.warning(request.pod, reason, message, field_path=request.field_path)
