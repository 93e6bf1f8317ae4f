"""CustomResourceDefinitions: kinds that a client adds.

podling keeps them and serves none of the kinds (docs/decisions/042). What kube-apiserver's own controllers
write into their status, `controllers/custom_resources.py` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from podling.apiserver.cel.formats import is_known
from podling.apiserver.kinds.columns import UNPRINTED
from podling.apiserver.kinds.kind import Controlled, Part
from podling.apiserver.rules import metadata
from podling.apiserver.rules.custom_resources.definition import (
    validate_change,
    validate_definition,
    validate_expressions,
    validate_names,
    validate_spec,
)
from podling.apiserver.rules.custom_resources.numbers import settle_numbers, settle_values
from podling.apiserver.rules.custom_resources.walk import schemas_in
from podling.model.errors import Cause
from podling.model.rules.custom_resources import CLEANUP, set_condition
from podling.model.scheme import resource_of
from podling.model.time import rfc3339
from podling.model.types.apiextensions import (
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
    CustomResourceDefinitionStatus,
    JSONSchemaProps,
)
from podling.model.types.meta import DeleteOptions

CONVERSION_PORT = 443
DELETED = (
    "Terminating",
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)


class _Status(Part[CustomResourceDefinition]):
    """Also the metadata may be written through it."""

    name = "status"
    has_tables = False

    def prepare_update(self, new: CustomResourceDefinition, old: CustomResourceDefinition) -> None:
        new.spec = old.spec
        new.status.stored_versions = new.status.stored_versions or _storage_version(new) or None

    def validate_update(self, new: CustomResourceDefinition, old: CustomResourceDefinition) -> list[Cause]:
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *validate_names(new.status.accepted_names, "status.acceptedNames"),
        ]


class CustomResourceDefinitions(Controlled[CustomResourceDefinition]):
    resource = resource_of(CustomResourceDefinition)
    judges_prefix_again = False
    validates_long = True
    standard_finalizers = False
    updates_unconditionally = False
    own_deletion = True
    unattended = "podling has no custom resources: it keeps the definition, and does not serve the kind"
    subresources = {"status": _Status()}
    columns = UNPRINTED

    def default(self, obj: CustomResourceDefinition) -> None:
        spec, status = obj.spec, obj.status
        spec.names.singular = spec.names.singular or spec.names.kind.lower()
        if not spec.names.list_kind and spec.names.kind:
            spec.names.list_kind = f"{spec.names.kind}List"
        if spec.conversion is None:
            spec.conversion = CustomResourceConversion(strategy="None")
        webhook = spec.conversion.webhook
        if (
            webhook is not None
            and webhook.client_config is None
            and webhook.conversion_review_versions is None
        ):
            spec.conversion.webhook = None
        elif webhook is not None and webhook.client_config and (service := webhook.client_config.service):
            service.port = CONVERSION_PORT if service.port is None else service.port
        if not status.stored_versions:
            status.stored_versions = _storage_version(obj) or None
        status.conditions = status.conditions or None
        for root in _roots(obj):
            for schema in schemas_in(root):
                schema.items = schema.items or None
            settle_numbers(root)

    def prepare_create(self, obj: CustomResourceDefinition, now: datetime) -> None:
        obj.status = CustomResourceDefinitionStatus(stored_versions=_storage_version(obj) or None)

    def prepare_update(self, new: CustomResourceDefinition, old: CustomResourceDefinition) -> None:
        stored = old.status.stored_versions or []
        added = [name for name in _storage_version(new) if name not in stored]
        new.status = CustomResourceDefinitionStatus(
            old.status.conditions,
            old.status.accepted_names,
            [*stored, *added] or None,
            old.status.observed_generation,
        )

    def validate(self, obj: CustomResourceDefinition) -> list[Cause]:
        causes = validate_definition(obj) or validate_expressions(obj.spec)
        _keep(obj)
        return causes

    def validate_changed(self, new: CustomResourceDefinition, old: CustomResourceDefinition) -> list[Cause]:
        causes = [
            *metadata.validate(new.metadata, namespaced=False, standard=False),
            *validate_spec(new.spec),
        ]
        if not causes and new.spec.versions != old.spec.versions:
            causes = validate_expressions(new.spec)
        _keep(new)
        return causes

    def validate_update(self, new: CustomResourceDefinition, old: CustomResourceDefinition) -> list[Cause]:
        return [*metadata.validate_update(new.metadata, old.metadata), *validate_change(new, old)]

    def warnings(self, obj: CustomResourceDefinition) -> list[str]:
        return [
            f'unrecognized format "{schema.format}"'
            for root in _roots(obj)
            for schema in schemas_in(root)
            if schema.format and not is_known(schema.format, schema.type)
        ]

    def graceful_delete(self, obj: CustomResourceDefinition, options: DeleteOptions, now: datetime) -> bool:
        meta = obj.metadata
        if meta.deletion_timestamp:
            return False
        # Nobody is asked about dependents.
        kept = [name for name in meta.finalizers if name not in (metadata.FOREGROUND, metadata.ORPHAN)]
        meta.finalizers = kept if CLEANUP in kept else [*kept, CLEANUP]
        meta.deletion_timestamp = rfc3339(now)
        set_condition(obj, CustomResourceDefinitionCondition(DELETED[0], DELETED[1], "", *DELETED[2:]), now)
        return True


def _storage_version(obj: CustomResourceDefinition) -> list[str]:
    return [version.name for version in obj.spec.versions or () if version.storage][:1]


def _roots(obj: CustomResourceDefinition) -> Iterator[JSONSchemaProps]:
    """The schemas of all versions that have one."""
    for version in obj.spec.versions or ():
        if version.schema is not None and version.schema.open_api_v3_schema is not None:
            yield version.schema.open_api_v3_schema


def _keep(obj: CustomResourceDefinition) -> None:
    """Numbers are judged as they were sent, and kept as Kubernetes writes them."""
    for root in _roots(obj):
        settle_values(root)
