"""core/v1 ServiceAccount, and authentication.k8s.io/v1 TokenRequest posted to its `token` subresource."""

from __future__ import annotations

from typing import Annotated, ClassVar

from podling.model.base import Part, always, null
from podling.model.fields import Int64, Time, by
from podling.model.meta import KubeObject
from podling.model.references import LocalObjectReference, ObjectReference


class ServiceAccount(KubeObject):
    KIND: ClassVar[str] = "ServiceAccount"
    API_VERSION: ClassVar[str] = "v1"

    secrets: Annotated[list[ObjectReference], by("name")] = []
    image_pull_secrets: list[LocalObjectReference] = []
    automount_service_account_token: bool | None = None


class BoundObjectReference(Part):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(Part):
    audiences: list[str] = always(list)
    expiration_seconds: Int64 | None = None
    bound_object_ref: BoundObjectReference | None = None


class TokenRequestStatus(Part):
    token: str = always(str)
    expiration_timestamp: Time | None = null()


class TokenRequest(KubeObject):
    KIND: ClassVar[str] = "TokenRequest"
    API_VERSION: ClassVar[str] = "authentication.k8s.io/v1"

    spec: TokenRequestSpec = always(TokenRequestSpec)
    status: TokenRequestStatus = always(TokenRequestStatus)
