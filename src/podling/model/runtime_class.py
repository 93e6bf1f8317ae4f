"""node.k8s.io/v1: RuntimeClass."""

from __future__ import annotations

from typing import Annotated, ClassVar

from podling.model.base import Part, always
from podling.model.container import ResourceList
from podling.model.fields import ATOMIC_MAP
from podling.model.meta import KubeObject
from podling.model.scheduling import Toleration


class Overhead(Part):
    pod_fixed: ResourceList = {}


class Scheduling(Part):
    node_selector: Annotated[dict[str, str], ATOMIC_MAP] = {}
    tolerations: list[Toleration] = []


class RuntimeClass(KubeObject):
    KIND: ClassVar[str] = "RuntimeClass"
    API_VERSION: ClassVar[str] = "node.k8s.io/v1"

    handler: str = always(str)
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None
