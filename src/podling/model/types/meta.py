"""meta/v1: the metadata of every object, the selectors and references that kinds share, and request options.

DeleteOptions are sent as a body, the other options as query parameters.
"""

from typing import Annotated, ClassVar

import msgspec

from podling.model.codec.fields import MERGED_SET, Int32, Int64, Object, Part, Time, always, by, null

NO_FIELDS = msgspec.Raw()
TEMPLATE_METADATA = ("metadata.ownerReferences", "metadata.finalizers", "metadata.managedFields")
"""What a template may not say of objects that are made later."""


class OwnerReference(Part):
    ATOMIC: ClassVar[bool] = True

    api_version: str = always(str)
    kind: str = always(str)
    name: str = always(str)
    uid: str = always(str)
    controller: bool | None = None
    block_owner_deletion: bool | None = None


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


class Preconditions(Part):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Object):
    KIND: ClassVar[str] = "DeleteOptions"
    API_VERSION: ClassVar[str] = "v1"

    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] = []
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None


class CreateOptions(Part):
    dry_run: list[str] = []
    field_manager: str = ""
    field_validation: str = ""
    pretty: str = ""


class UpdateOptions(Part):
    dry_run: list[str] = []
    field_manager: str = ""
    field_validation: str = ""
    pretty: str = ""


class PatchOptions(Part):
    dry_run: list[str] = []
    force: bool | None = None
    field_manager: str = ""
    field_validation: str = ""
    pretty: str = ""


class ListOptions(Part):
    """Also the options of a watch and of deletecollection."""

    label_selector: str = ""
    field_selector: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: Int64 | None = None
    limit: Int64 = 0
    continue_: str = ""
    send_initial_events: bool | None = None
    pretty: str = ""


class PodLogOptions(Part):
    container: str = ""
    follow: bool = False
    previous: bool = False
    since_seconds: Int64 | None = None
    since_time: Time = ""
    timestamps: bool = False
    tail_lines: Int64 | None = None
    limit_bytes: Int64 | None = None
    insecure_skip_tls_verify_backend: bool = False
    stream: str | None = None
    pretty: str = ""


class PodExecOptions(Part):
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""
    command: list[str] = []


class PodAttachOptions(Part):
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""


class PodPortForwardOptions(Part):
    ports: list[Int32] = []
