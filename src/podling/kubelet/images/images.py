"""Makes a container's image present on the node: pull policy, pull secrets, and who may use a present image.

`Images.ensure` makes one attempt; the planner decides when to try again. Images seen once are remembered, so
that a pod of known images asks the runtime nothing. When creating a container fails with NOT_FOUND, `forget`
makes the next attempt ask the runtime again.

The policy for present images is Kubernetes' NeverVerifyPreloadedImages: an image that was pulled with a
credential may be used by pods that have this credential; other pods pull it again, so that the registry
checks theirs. Images that were preloaded, or pulled without a credential, are for all pods.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from podling.client.events import EventRecorder
from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.cri_config.security import ImageUser
from podling.kubelet.images.pulls import Pulls, pull_error, pull_text
from podling.kubelet.images.reference import InvalidReference, credentials_for, with_default_tag
from podling.kubelet.pod.containers import StartError, refused, rpc_text
from podling.model.codec.fields import Part
from podling.model.codec.json import decode, encode
from podling.model.errors import StatusError
from podling.model.time import Clock, go_duration
from podling.model.types.container import EphemeralContainerCommon
from podling.model.types.pod import Pod

log = logging.getLogger(__name__)

_NOBODY_NAMED = ImageUser()
ALWAYS = "Always"
NEVER = "Never"


class PulledImage(Part):
    """Who may use an image."""

    anyone: bool = False
    """It was pulled without a credential."""
    credentials: list[str] = []
    """SHA-256 hashes of the credentials it was pulled with."""


class _Written(Part):
    images: dict[str, PulledImage] = {}


class PulledImages:
    """Who may use each image, by its id in the runtime; kept in a file, with credentials as hashes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._images: dict[str, PulledImage] = {}
        try:
            self._images = dict(decode(file.read_bytes(), _Written).images)
        except FileNotFoundError:
            pass
        except (OSError, StatusError) as error:
            log.warning("%s cannot be read: %s", file, error)

    def usable(self, image_id: str, credentials: Iterable[pb.AuthConfig]) -> bool:
        known = self._images.get(image_id)
        if known is None or known.anyone:
            return True
        return any(_hash(credential) in known.credentials for credential in credentials)

    def pulled(self, image_id: str, credential: pb.AuthConfig | None) -> None:
        """Record a pull; `credential` is the one that the registry accepted, None without."""
        known = self._images.get(image_id) or PulledImage()
        taken = [] if credential is None else [_hash(credential)]
        credentials = [*known.credentials, *(hash for hash in taken if hash not in known.credentials)]
        image = PulledImage(anyone=known.anyone or credential is None, credentials=credentials)
        if self._images.get(image_id) == image:
            return
        self._images[image_id] = image
        fresh = self._file.with_suffix(".new")
        try:
            fresh.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            fresh.write_bytes(encode(_Written(images=self._images)))
            fresh.chmod(0o600)
            fresh.rename(self._file)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._file, error)


def _hash(credential: pb.AuthConfig) -> str:
    return hashlib.sha256(credential.SerializeToString(deterministic=True)).hexdigest()


class PresentImage(msgspec.Struct, frozen=True):
    """An image that is on the node."""

    id: str
    """What containers are created with."""
    reference: str = ""
    """The imageID in the container's status."""
    user: ImageUser = _NOBODY_NAMED


class ImageRequest(msgspec.Struct, frozen=True):
    """A container's need for its image."""

    pod: Pod
    container: EphemeralContainerCommon
    field_path: str
    """Of the container, for events."""
    secrets: Sequence[Mapping[str, bytes]] = ()
    """The decoded data of the pod's pull secrets."""
    sandbox_config: pb.PodSandboxConfig | None = None


class Images:
    """The node's images."""

    def __init__(
        self,
        runtime: Runtime,
        events: EventRecorder,
        clock: Clock,
        pulls: Pulls,
        pulled: PulledImages | None = None,
    ) -> None:
        """`pulled` decides who may use a present image; None: every pod."""
        self._runtime = runtime
        self._events = events
        self._clock = clock
        self._present: dict[str, PresentImage] = {}
        self._pulls = pulls
        self._pulled = pulled

    async def ensure(self, request: ImageRequest) -> PresentImage:
        """Find or pull the image. Raises StartError with the waiting reason for the container's status."""
        container = request.container
        try:
            reference = with_default_tag(container.image)
        except InvalidReference as error:
            self._warn(request, "InspectFailed", str(error))
            raise StartError("InvalidImageName", str(error)) from error
        image = self._present.get(reference)
        if image is None:
            try:
                found = await self._runtime.image_status(reference)
            except RuntimeFault as fault:
                text = f'Failed to inspect image "{container.image}": {rpc_text(fault)}'
                self._warn(request, "InspectFailed", text)
                raise refused("ImageInspectError", text, fault) from fault
            image = self._remember(reference, found) if found else None
        credentials = credentials_for(container.image, request.secrets)
        usable = image and (self._pulled is None or self._pulled.usable(image.id, credentials))
        if image is not None and usable and container.image_pull_policy != ALWAYS:
            present = "already present on machine and can be accessed by the pod"
            self._say(request, "Pulled", f'Container image "{container.image}" {present}')
            return image
        if container.image_pull_policy == NEVER:
            text = f'Container image "{container.image}" is not present with pull policy of Never'
            self._warn(request, "ErrImageNeverPull", text)
            raise StartError("ErrImageNeverPull", text)
        return await self._pull(request, reference)

    def forget(self, image: str) -> None:
        """Ask the runtime again next time; `image` is an id or a reference."""
        self._present = {
            name: found for name, found in self._present.items() if image not in (name, found.id)
        }

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
            credentials = credentials_for(reference, request.secrets)
            pulled = await self._pulls.pull(reference, credentials, request.sandbox_config)
            image = await self._runtime.image_status(reference)
        except RuntimeFault as fault:
            self._warn(request, "Failed", f'Failed to pull image "{name}": {pull_text(fault)}')
            raise pull_error(name, fault) from fault
        waited = go_duration(self._clock.now() - began)
        took = f"{go_duration(pulled.took)} ({waited} including waiting)"
        size = f"Image size: {image.size if image else 0} bytes."
        self._say(request, "Pulled", f'Successfully pulled image "{name}" in {took}. {size}')
        present = self._remember(reference, image) if image else PresentImage(pulled.image, pulled.image)
        if self._pulled is not None:
            self._pulled.pulled(present.id, pulled.credential)
        return present

    def _say(self, request: ImageRequest, reason: str, message: str) -> None:
        self._events.normal(request.pod, reason, message, field_path=request.field_path)

    def _warn(self, request: ImageRequest, reason: str, message: str) -> None:
        self._events.warning(request.pod, reason, message, field_path=request.field_path)
