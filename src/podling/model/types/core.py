"""core/v1: ConfigMap, Secret, Namespace, ServiceAccount, LimitRange, ResourceQuota, ComponentStatus and
Event.

Binary values of config maps and secrets are bytes here and base64 on the wire. Event is one stored object
with two sets of field names: core/v1 and events.k8s.io/v1. TokenRequest (authentication.k8s.io/v1) is posted
to the `token` subresource of a service account and stands beside it.
"""

from typing import Annotated, ClassVar

from podling.model.codec.fields import Int32, Int64, MicroTime, Part, Time, always, by, null
from podling.model.types.container import ResourceList
from podling.model.types.meta import KubeObject
from podling.model.types.references import LocalObjectReference, ObjectReference


class EventSource(Part):
    component: str = ""
    host: str = ""


class EventSeries(Part):
    """`last_observed_time` is a MicroTime (`2026-01-02T03:04:05.000006Z`)."""

    count: Int32 = 0
    last_observed_time: MicroTime | None = null()


class Event(KubeObject):
    """`event_time` is a MicroTime; the timestamps are whole seconds."""

    KIND: ClassVar[str] = "Event"
    API_VERSION: ClassVar[str] = "v1"

    involved_object: ObjectReference = always(ObjectReference)
    reason: str = ""
    message: str = ""
    source: EventSource = always(EventSource)
    first_timestamp: Time | None = null()
    last_timestamp: Time | None = null()
    count: Int32 = 0
    type: str = ""
    event_time: MicroTime | None = null()
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = always(str)
    reporting_instance: str = always(str)


class EventsSeries(Part):
    """EventSeries of events.k8s.io/v1, which is written whole."""

    GO_NAME: ClassVar[str] = "EventSeries"

    count: Int32 = always(int)
    last_observed_time: MicroTime | None = null()


class EventsEvent(KubeObject):
    """events.k8s.io/v1: what core calls involvedObject and message is regarding and note here."""

    GO_NAME: ClassVar[str] = "Event"
    KIND: ClassVar[str] = "Event"
    API_VERSION: ClassVar[str] = "events.k8s.io/v1"

    event_time: MicroTime | None = null()
    series: EventsSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = always(ObjectReference)
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
    deprecated_source: EventSource = always(EventSource)
    deprecated_first_timestamp: Time | None = null()
    deprecated_last_timestamp: Time | None = null()
    deprecated_count: Int32 = 0


class ConfigMap(KubeObject):
    KIND: ClassVar[str] = "ConfigMap"
    API_VERSION: ClassVar[str] = "v1"

    immutable: bool | None = None
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}


class Secret(KubeObject):
    KIND: ClassVar[str] = "Secret"
    API_VERSION: ClassVar[str] = "v1"

    immutable: bool | None = None
    data: dict[str, bytes] = {}
    string_data: dict[str, str] = {}
    type: str = ""


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
    expiration_seconds: Int64 | None = null()
    bound_object_ref: BoundObjectReference | None = null()


class TokenRequestStatus(Part):
    token: str = always(str)
    expiration_timestamp: Time | None = null()


class TokenRequest(KubeObject):
    KIND: ClassVar[str] = "TokenRequest"
    API_VERSION: ClassVar[str] = "authentication.k8s.io/v1"

    spec: TokenRequestSpec = always(TokenRequestSpec)
    status: TokenRequestStatus = always(TokenRequestStatus)


class ScopedResourceSelectorRequirement(Part):
    scope_name: str = always(str)
    operator: str = always(str)
    values: list[str] = []


class ScopeSelector(Part):
    ATOMIC: ClassVar[bool] = True

    match_expressions: list[ScopedResourceSelectorRequirement] = []


class ResourceQuotaSpec(Part):
    hard: ResourceList = {}
    scopes: list[str] = []
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Part):
    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(KubeObject):
    KIND: ClassVar[str] = "ResourceQuota"
    API_VERSION: ClassVar[str] = "v1"

    spec: ResourceQuotaSpec = always(ResourceQuotaSpec)
    status: ResourceQuotaStatus = always(ResourceQuotaStatus)


class LimitRangeItem(Part):
    type: str = always(str)
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(Part):
    limits: list[LimitRangeItem] = always(list)


class LimitRange(KubeObject):
    KIND: ClassVar[str] = "LimitRange"
    API_VERSION: ClassVar[str] = "v1"

    spec: LimitRangeSpec = always(LimitRangeSpec)


class ComponentCondition(Part):
    type: str = always(str)
    status: str = always(str)
    message: str = ""
    error: str = ""


class ComponentStatus(KubeObject):
    KIND: ClassVar[str] = "ComponentStatus"
    API_VERSION: ClassVar[str] = "v1"

    conditions: Annotated[list[ComponentCondition], by("type")] = []
