"""Who may use an image that is on the node: whoever could have pulled it.

An image that was pulled with a credential is for pods that bring that credential; others have to pull it
themselves, and so show the registry theirs. An image nobody pulled here (it was loaded, or came with the
machine) and one that was pulled without any credential are for everyone. Upstream's policy
NeverVerifyPreloadedImages. What is known outlives the kubelet in a file: credentials are in it as hashes.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path

from podling.cri.grpc import cri_pb2 as pb
from podling.model.base import Part
from podling.model.errors import StatusError
from podling.model.json import decode, encode

log = logging.getLogger(__name__)


class PulledImage(Part):
    """`credentials` are hashes of those it was pulled with; `anyone`: it was pulled without."""

    anyone: bool = False
    credentials: list[str] = []


class _Written(Part):
    images: dict[str, PulledImage] = {}


class PulledImages:
    """By the image's id in the runtime."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._images = _read(file)

    def usable(self, image_id: str, credentials: Iterable[pb.AuthConfig]) -> bool:
        known = self._images.get(image_id)
        if known is None or known.anyone:
            return True
        return any(_hash(credential) in known.credentials for credential in credentials)

    def pulled(self, image_id: str, credential: pb.AuthConfig | None) -> None:
        """`credential` is the one the registry took."""
        known = self._images.get(image_id) or PulledImage()
        taken = [] if credential is None else [_hash(credential)]
        credentials = [*known.credentials, *(hash for hash in taken if hash not in known.credentials)]
        self._keep(image_id, PulledImage(anyone=known.anyone or credential is None, credentials=credentials))

    def _keep(self, image_id: str, image: PulledImage) -> None:
        if self._images.get(image_id) == image:
            return
        self._images[image_id] = image
        try:
            _write(self._file, self._images)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._file, error)


def _hash(credential: pb.AuthConfig) -> str:
    return hashlib.sha256(credential.SerializeToString(deterministic=True)).hexdigest()


def _read(file: Path) -> dict[str, PulledImage]:
    try:
        return dict(decode(file.read_bytes(), _Written).images)
    except FileNotFoundError:
        return {}
    except (OSError, StatusError) as error:
        log.warning("%s cannot be read: %s", file, error)
        return {}


def _write(file: Path, images: dict[str, PulledImage]) -> None:
    file.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_bytes(encode(_Written(images=images)))
    fresh.chmod(0o600)
    fresh.rename(file)
