"""admission.k8s.io/v1: what a webhook answers. What it is asked is written as plain data."""

from typing import ClassVar

from podling.model.codec.fields import Object, Part
from podling.model.errors import Status


class AdmissionResponse(Part):
    uid: str = ""
    allowed: bool = False
    status: Status | None = None
    patch: bytes = b""
    patch_type: str | None = None
    audit_annotations: dict[str, str] = {}
    warnings: list[str] = []


class AdmissionReview(Object):
    KIND: ClassVar[str] = "AdmissionReview"
    API_VERSION: ClassVar[str] = "admission.k8s.io/v1"

    response: AdmissionResponse | None = None
