"""ImagePolicyWebhook: another server is sent an ImageReview of the images of a pod, or of its ephemeral
containers, and may refuse them. What it answers is kept for a while."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from podling.apiserver.admission.forms import Form
from podling.apiserver.admission.plugin import Attributes, Handles, Operation
from podling.apiserver.admission.plugin_options import ImagePolicy
from podling.apiserver.authz.webhook import WebhookFailure, repeated
from podling.model.codec import json
from podling.model.codec.fields import Object, Part
from podling.model.errors import Cause, StatusError

KIND, API_VERSION = "ImageReview", "imagepolicy.k8s.io/v1alpha1"
EPHEMERAL = "ephemeralcontainers"
TOLD = ".image-policy.k8s.io/"
"""In the annotations of a pod that the server is shown."""
AUDIT = "imagepolicywebhook.image-policy.k8s.io/"
FAILED_OPEN = "failed-open"
FORBIDDEN = 403
REMEMBERED = 1024


class ImageReviewStatus(Part):
    allowed: bool = False
    reason: str = ""
    audit_annotations: dict[str, str] = {}


class ImageReview(Object):
    KIND: ClassVar[str] = KIND
    API_VERSION: ClassVar[str] = API_VERSION

    status: ImageReviewStatus = msgspec.field(default_factory=ImageReviewStatus)


class ImagePolicyWebhook:
    """`now` is a clock in seconds that never goes back."""

    handles: ClassVar[Handles] = {"pods": ("CREATE", "UPDATE"), f"pods/{EPHEMERAL}": ("CREATE", "UPDATE")}

    def __init__(self, policy: ImagePolicy, now: Callable[[], float]) -> None:
        self._policy, self._now = policy, now
        self._known: OrderedDict[bytes, tuple[float, ImageReviewStatus]] = OrderedDict()

    def waits(self, forms: Sequence[Form], subresource: str, operation: Operation) -> bool:
        target = f"{forms[0].plural}/{subresource}" if subresource else forms[0].plural
        return operation in self.handles.get(target, ())

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        body = review_of(attributes, new)
        key = hashlib.sha256(body).digest()
        until, status = self._known.get(key, (0.0, None))
        if status is None or self._now() >= until:
            try:
                status = await repeated(lambda: self._policy.send(body), status_of, self._policy.backoff)
            except WebhookFailure as error:
                if not self._policy.fails_open:
                    if error.code == FORBIDDEN:
                        # Kubernetes takes it for its own.
                        why = Cause("UnexpectedServerResponse", str(error))
                        raise StatusError(403, "Forbidden", str(error), causes=[why]) from error
                    raise attributes.forbidden(str(error)) from error
                attributes.sent.annotations[AUDIT + FAILED_OPEN] = "true"
                return
            ttl = self._policy.allowed_ttl if status.allowed else self._policy.denied_ttl
            self._known[key] = self._now() + ttl, status
            self._known.move_to_end(key)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        for name, value in status.audit_annotations.items():
            attributes.sent.annotations[AUDIT + name] = value
        if not status.allowed:
            raise attributes.forbidden(
                f"image policy webhook backend denied one or more images: {status.reason}"
                if status.reason
                else "one or more images rejected by webhook backend"
            )


def review_of(attributes: Attributes, pod: Any) -> bytes:
    """The ImageReview, in Go's order."""
    spec = pod.spec
    is_ephemeral = attributes.subresource == EPHEMERAL
    containers = spec.ephemeral_containers if is_ephemeral else (*spec.containers, *spec.init_containers)
    told = {key: value for key, value in sorted(pod.metadata.annotations.items()) if TOLD in key}
    asked: Mapping[str, Any] = {
        "containers": [{"image": one.image} if one.image else {} for one in containers],
        **({"annotations": told} if told else {}),
        **({"namespace": attributes.namespace} if attributes.namespace else {}),
    }
    review = {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": {},
        "spec": asked,
        "status": {"allowed": False},
    }
    return msgspec.json.encode(review)


def status_of(body: bytes) -> ImageReviewStatus:
    """Raises WebhookFailure."""
    try:
        said = json.decode_data(body)
        if not isinstance(said, dict):
            raise WebhookFailure("couldn't get version/kind; json parse error: it is no object")
        if said.get("kind", KIND) != KIND or said.get("apiVersion", API_VERSION) != API_VERSION:
            kind, version = said.get("kind"), said.get("apiVersion")
            raise WebhookFailure(f'no kind "{kind}" is registered for version "{version}"')
        return json.from_data(said, ImageReview).status
    except StatusError as error:
        raise WebhookFailure(f"{error.__cause__ or error.message}") from error
