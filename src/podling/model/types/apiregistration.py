"""apiregistration.k8s.io/v1: APIService."""

from __future__ import annotations

from typing import Annotated, ClassVar

from podling.model.codec.fields import ATOMIC_LIST, Int32, Part, Time, always, by, null
from podling.model.types.meta import KubeObject


class APIServiceReference(Part):
    namespace: str = ""
    name: str = ""
    port: Int32 | None = None


class APIServiceSpec(Part):
    service: APIServiceReference | None = None
    group: str = ""
    version: str = ""
    insecure_skip_tls_verify: bool = False
    ca_bundle: Annotated[bytes, ATOMIC_LIST] = b""
    group_priority_minimum: Int32 = always(int)
    version_priority: Int32 = always(int)


class APIServiceCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class APIServiceStatus(Part):
    conditions: Annotated[list[APIServiceCondition], by("type")] = []


class APIService(KubeObject):
    KIND: ClassVar[str] = "APIService"
    API_VERSION: ClassVar[str] = "apiregistration.k8s.io/v1"

    spec: APIServiceSpec = always(APIServiceSpec)
    status: APIServiceStatus = always(APIServiceStatus)
