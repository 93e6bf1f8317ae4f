"""meta/v1: what all objects carry, and the selectors and references all kinds share."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from podling.model.base import Object, Part, always, null
from podling.model.fields import MERGED_SET, Int64, Time, by


class OwnerReference(Part):
    ATOMIC: ClassVar[bool] = True

    api_version: str = always(str)
    kind: str = always(str)
    name: str = always(str)
    uid: str = always(str)
    controller: bool | None = None
    block_owner_deletion: bool | None = None


NO_FIELDS = msgspec.Raw()


class ManagedFieldsEntry(Part):
    """`fields_v1` stays the bytes it is: few who read an object look into it."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time = ""
    fields_type: str = ""
    fields_v1: msgspec.Raw = msgspec.field(default=NO_FIELDS, name="fieldsV1")
    subresource: str = ""


class ObjectMeta(Part):
    """Times are RFC 3339 strings of whole seconds in UTC (`2026-01-02T03:04:05Z`), empty when unset."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Time = ""
    deletion_timestamp: Time = ""
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: Annotated[list[OwnerReference], by("uid")] = []
    finalizers: Annotated[list[str], MERGED_SET] = []
    managed_fields: list[ManagedFieldsEntry] = []


class ShardInfo(Part):
    selector: str = always(str)


class ListMeta(Part):
    self_link: str = ""
    resource_version: str = always(str)
    continue_: str = ""
    remaining_item_count: Int64 | None = None
    shard_info: ShardInfo | None = None


class KubeObject(Object):
    """An object that is stored: it has metadata, written even when it is empty."""

    metadata: ObjectMeta = always(ObjectMeta)


def controller_reference(owner: KubeObject) -> OwnerReference:
    """In what a controller makes for `owner`: it goes with it, and a foreground deletion waits for that."""
    return OwnerReference(
        api_version=owner.API_VERSION,
        kind=owner.KIND,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


class PartialObjectMetadata(KubeObject):
    KIND: ClassVar[str] = "PartialObjectMetadata"
    API_VERSION: ClassVar[str] = "meta.k8s.io/v1"


class LabelSelectorRequirement(Part):
    key: str = always(str)
    operator: str = always(str)
    values: list[str] = []


class LabelSelector(Part):
    ATOMIC: ClassVar[bool] = True

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class Condition(Part):
    """meta/v1 Condition, as newer kinds carry it."""

    type: str = always(str)
    status: str = always(str)
    observed_generation: Int64 = 0
    last_transition_time: Time | None = null()
    reason: str = always(str)
    message: str = always(str)
