"""node.k8s.io/v1: RuntimeClass."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import ATOMIC_MAP, Part, always
from podling.model.types.container import ResourceList
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Toleration


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
