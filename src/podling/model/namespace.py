"""core/v1: Namespace."""

from __future__ import annotations

from typing import Annotated, ClassVar

from podling.model.base import Part, always, null
from podling.model.fields import Time, by
from podling.model.meta import KubeObject


class NamespaceSpec(Part):
    finalizers: list[str] = []


class NamespaceCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class NamespaceStatus(Part):
    phase: str = ""
    conditions: Annotated[list[NamespaceCondition], by("type")] = []


class Namespace(KubeObject):
    KIND: ClassVar[str] = "Namespace"
    API_VERSION: ClassVar[str] = "v1"

    spec: NamespaceSpec = always(NamespaceSpec)
    status: NamespaceStatus = always(NamespaceStatus)
