"""Validation of a CustomResourceDefinition
(`apiextensions-apiserver/pkg/apis/apiextensions/validation` of Kubernetes).

Kubernetes tells faults by the paths of its internal type. There, what all versions have alike stands in the
spec, and not in the versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.rules import metadata
from podling.apiserver.rules.certificates import ca_bundle_fault
from podling.apiserver.rules.custom_resources.conversion import validate_conversion
from podling.apiserver.rules.custom_resources.defaults import validate_defaults
from podling.apiserver.rules.custom_resources.expressions import validate_rules
from podling.apiserver.rules.custom_resources.schema import validate_schema
from podling.apiserver.rules.custom_resources.selectable import validate_selectable
from podling.apiserver.rules.custom_resources.structural import unsupported, validate_structural
from podling.apiserver.rules.custom_resources.values import Budget
from podling.apiserver.rules.custom_resources.walk import At, schemas_in
from podling.apiserver.rules.field import (
    IMMUTABLE,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
)
from podling.model import names
from podling.model.codec.fields import told_empty
from podling.model.errors import Cause
from podling.model.rules.custom_resources import APPROVAL, approval, condition_of, is_protected
from podling.model.types.apiextensions import (
    CustomResourceColumnDefinition,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    CustomResourceValidation,
    JSONSchemaProps,
)

SCOPES = ("Cluster", "Namespaced")
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
LONGEST_WARNING = 256
MIXED_CASE = "may have mixed case, but should otherwise match: "
IF_STATUS = "at the root of the schema if the status subresource is enabled"
WITH_STATUS = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusive_maximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusive_minimum": "ExclusiveMinimum",
    "max_length": "MaxLength",
    "min_length": "MinLength",
    "pattern": "Pattern",
    "max_items": "MaxItems",
    "min_items": "MinItems",
    "unique_items": "UniqueItems",
    "multiple_of": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "external_docs": "ExternalDocs",
    "example": "Example",
    "preserve_unknown_fields": "XPreserveUnknownFields",
    "validations": "XValidations",
}
"""What a schema may say at its root if there is a status, by Go's names."""


class _Shared(NamedTuple):
    """What all versions have alike, and what is left for their defaults."""

    budget: Budget
    schema: CustomResourceValidation | None = None
    subresources: CustomResourceSubresources | None = None
    columns: list[CustomResourceColumnDefinition] = []


def validate_definition(obj: CustomResourceDefinition) -> list[Cause]:
    """The faults of a definition by itself, also those of its metadata."""

    def name_rule(name: str) -> list[str]:
        faults = names.dns1123_subdomain(name)
        wanted = f"{obj.spec.names.plural}.{obj.spec.group}"
        return faults if name == wanted else [*faults, 'must be spec.names.plural+"."+spec.group']

    return [
        *metadata.validate(obj.metadata, namespaced=False, name_rule=name_rule, standard=False),
        *validate_spec(obj.spec),
        *_validate_status(obj),
        *_validate_approval(obj, None),
        *_validate_preserving(obj.spec),
    ]


def _validate_status(obj: CustomResourceDefinition) -> Iterator[Cause]:
    yield from validate_names(obj.status.accepted_names, "status.acceptedNames")
    yield from _validate_stored(obj.status.stored_versions, obj.spec.versions or [])


def validate_expressions(spec: CustomResourceDefinitionSpec) -> list[Cause]:
    """What is wrong with the rules in the schemas of a definition that is otherwise valid. Only to be called
    in a thread: it may wait for a process. Raises StatusError 500 if that is lost."""
    versions = spec.versions or []
    shared = _shared(versions).schema
    found = (
        [("spec.validation", shared)]
        if shared is not None
        else [(f"spec.versions[{i}].schema", one.schema) for i, one in enumerate(versions)]
    )
    return [
        cause
        for path, validation in found
        if validation is not None and validation.open_api_v3_schema is not None
        for cause in validate_rules(validation.open_api_v3_schema, At(None, f"{path}.openAPIV3Schema"))
    ]


def validate_change(new: CustomResourceDefinition, old: CustomResourceDefinition) -> Iterator[Cause]:
    """What an update may not change, and what is wrong beside the spec. `old`: names that were accepted stay,
    because objects are kept by them."""
    fixed: list[tuple[str, Any, Any]] = []
    accepted = condition_of(old, "NamesAccepted")
    if accepted is not None and accepted.status == "True":
        bundle, standing = _ca_bundle(new.spec), _ca_bundle(old.spec)
        if bundle and not (standing and ca_bundle_fault(standing)) and (why := ca_bundle_fault(bundle)):
            path = "spec.conversion.webhookClientConfig.caBundle"
            yield invalid(path, bundle, f"unable to load root certificates: {why}")
        fixed = [
            ("scope", new.spec.scope, old.spec.scope),
            ("names.kind", new.spec.names.kind, old.spec.names.kind),
        ]
    fixed += [
        ("group", new.spec.group, old.spec.group),
        ("names.plural", new.spec.names.plural, old.spec.names.plural),
    ]
    for path, value, standing in fixed:
        if value != standing:
            yield invalid(f"spec.{path}", value, IMMUTABLE)
    yield from _validate_status(new)
    yield from _validate_approval(new, old)
    if not old.spec.preserve_unknown_fields:
        yield from _validate_preserving(new.spec)


def _ca_bundle(spec: CustomResourceDefinitionSpec) -> bytes:
    webhook = spec.conversion.webhook if spec.conversion else None
    return webhook.client_config.ca_bundle if webhook and webhook.client_config else b""


def validate_spec(spec: CustomResourceDefinitionSpec) -> Iterator[Cause]:
    yield from _validate_group(spec.group)
    if not spec.scope:
        yield required("spec.scope")
    elif spec.scope not in SCOPES:
        yield not_supported("spec.scope", spec.scope, SCOPES)
    versions = spec.versions or []
    for i, version in enumerate(versions):
        if version.schema is None or version.schema.open_api_v3_schema is None:
            yield required(f"spec.versions[{i}].schema.openAPIV3Schema")
    if spec.preserve_unknown_fields and _has_defaults(versions):
        why = "must be false in order to use defaults in the schema"
        yield invalid("spec.preserveUnknownFields", True, why)
    shared = _shared(versions)
    seen: set[str] = set()
    for i, version in enumerate(versions):
        path = f"spec.versions[{i}]"
        if faults := names.dns1035_label(version.name):
            yield invalid(f"{path}.name", version.name, ",".join(faults))
        yield from _validate_warning(version, f"{path}.deprecationWarning")
        seen.add(version.name)
        yield from _validate_version(version, shared, path)
    stored = sum(version.storage for version in versions)
    if len(seen) < len(versions):
        yield invalid(
            "spec.versions", _shown_versions(spec.versions, shared), "must contain unique version names"
        )
    if stored != 1:
        why = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", _shown_versions(spec.versions, shared), why)
    if versions and versions[0].name and (faults := names.dns1035_label(versions[0].name)):
        yield invalid("spec.version", versions[0].name, ",".join(faults))
    for name in ("plural", "singular", "kind", "list_kind"):
        if not getattr(spec.names, name):
            yield required(f"spec.names.{'listKind' if name == 'list_kind' else name}")
    yield from validate_names(spec.names, "spec.names")
    if versions:
        yield from _validate_shared(versions, shared)
    if spec.preserve_unknown_fields and spec.conversion and spec.conversion.strategy != "None":
        why = "must be None if spec.preserveUnknownFields is true"
        yield invalid("spec.conversion.strategy", spec.conversion.strategy, why)
    if spec.conversion is not None:
        yield from validate_conversion(spec.conversion, "spec.conversion")


def _shown_versions(versions: list[CustomResourceDefinitionVersion] | None, shared: _Shared) -> Any:
    """Without what all have alike, as it stands elsewhere in Kubernetes' internal type."""
    if not versions or any(one.schema != versions[0].schema for one in versions):
        return versions
    return internal(
        [
            msgspec.structs.replace(one, schema=None, subresources=None, additional_printer_columns=[])
            for one in versions
        ]
    )


def _validate_group(group: str) -> Iterator[Cause]:
    if not group:
        yield required("spec.group")
    elif faults := names.dns1123_subdomain(group):
        yield invalid("spec.group", group, ",".join(faults))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _shared(versions: list[CustomResourceDefinitionVersion]) -> _Shared:
    if not versions:
        return _Shared(Budget())
    first, *rest = versions
    return _Shared(
        Budget(),
        first.schema if all(one.schema == first.schema for one in rest) else None,
        first.subresources if all(one.subresources == first.subresources for one in rest) else None,
        first.additional_printer_columns
        if all(one.additional_printer_columns == first.additional_printer_columns for one in rest)
        else [],
    )


def _validate_version(
    version: CustomResourceDefinitionVersion, shared: _Shared, path: str
) -> Iterator[Cause]:
    """What is its own."""
    subresources = version.subresources
    has_status = subresources is not None and subresources.status is not None
    if shared.schema is None:
        yield from _validate_validation(
            version.schema, f"{path}.schema", shared.budget, has_status=has_status
        )
    if shared.subresources is None:
        yield from _validate_subresources(subresources, f"{path}.subresources")
    if not shared.columns:
        yield from _validate_columns(version.additional_printer_columns, f"{path}.additionalPrinterColumns")
    if shared.schema is None:
        yield from _validate_selected(version, f"{path}.selectableFields", f"{path}.schema")


def _validate_shared(versions: list[CustomResourceDefinitionVersion], shared: _Shared) -> Iterator[Cause]:
    has_status = any(one.subresources is not None and one.subresources.status is not None for one in versions)
    yield from _validate_validation(shared.schema, "spec.validation", shared.budget, has_status=has_status)
    yield from _validate_subresources(shared.subresources, "spec.subresources")
    yield from _validate_columns(shared.columns, "spec.additionalPrinterColumns")
    if shared.schema is None:
        return
    first = versions[0]
    if all(one.selectable_fields == first.selectable_fields for one in versions):
        yield from _validate_selected(first, "spec.selectableFields", "spec.schema")
    else:
        for i, one in enumerate(versions):
            if one.selectable_fields:
                why = "may only be set when `version.schema.openAPIV3Schema` is not included"
                yield invalid(f"spec.versions[{i}].selectableFields", "", why)


def _validate_selected(
    version: CustomResourceDefinitionVersion, path: str, of_schema: str
) -> Iterator[Cause]:
    if not version.selectable_fields or version.schema is None:
        return
    schema = version.schema.open_api_v3_schema
    if schema is None:
        return
    if fault := unsupported(schema):
        yield invalid(f"{of_schema}.openAPIV3Schema", "", fault)
    else:
        yield from validate_selectable(version.selectable_fields, schema, At(None, path))


def _validate_validation(
    validation: CustomResourceValidation | None, path: str, budget: Budget, *, has_status: bool
) -> Iterator[Cause]:
    if validation is None or (schema := validation.open_api_v3_schema) is None:
        return
    where = f"{path}.openAPIV3Schema"
    causes = list(_validate_with_status(schema, where)) if has_status else []
    if schema.nullable:
        causes.append(forbidden(f"{where}.nullable", "nullable cannot be true at the root"))
    at, why = At(None, where), unsupported(schema)
    if not why:
        causes += validate_structural(schema, at) or validate_defaults(schema, at, budget)
    causes += validate_schema(schema, at)
    yield from causes or ([invalid(where, "", why)] if why else [])


def _validate_with_status(schema: JSONSchemaProps, path: str) -> Iterator[Cause]:
    empty = JSONSchemaProps()
    for attribute, name in zip(schema.__struct_fields__, schema.__struct_encode_fields__, strict=True):
        value = getattr(schema, attribute)
        if value == getattr(empty, attribute) and name not in told_empty(schema):
            continue
        if attribute == "type" and value != "object":
            yield invalid(f"{path}.type", value, f'only "object" is allowed as the type {IF_STATUS}')
            return
        if attribute not in WITH_STATUS:
            allowed = " ".join(WITH_STATUS.values())
            yield invalid(path, schema, f"only [{allowed}] fields are allowed {IF_STATUS}")
            return


def _validate_warning(version: CustomResourceDefinitionVersion, path: str) -> Iterator[Cause]:
    warning = version.deprecation_warning
    if warning is None:
        return
    if not version.deprecated:
        yield invalid(path, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > LONGEST_WARNING:
        yield invalid(path, warning, f"must be <= {LONGEST_WARNING} characters long")
    if not warning:
        yield invalid(path, warning, "must not be an empty string")
    bad = next((i for i, letter in enumerate(warning) if not letter.isprintable()), None)
    if bad is not None:
        index = len(warning[:bad].encode())
        why = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
        yield invalid(path, warning, why)


def validate_names(of: CustomResourceDefinitionNames, path: str) -> Iterator[Cause]:
    for name, value, prefix in (
        ("plural", of.plural, ""),
        ("singular", of.singular, ""),
        ("kind", of.kind, MIXED_CASE),
        ("listKind", of.list_kind, MIXED_CASE),
    ):
        read = value.lower() if prefix else value
        if value and (faults := names.dns1035_label(read)):
            yield invalid(f"{path}.{name}", value, prefix + ",".join(faults))
    for i, name in enumerate(of.short_names):
        if faults := names.dns1035_label(name):
            yield invalid(f"{path}.shortNames[{i}]", name, ",".join(faults))
    if of.kind and of.kind == of.list_kind:
        yield invalid(f"{path}.listKind", of.list_kind, "kind and listKind may not be the same")
    for i, name in enumerate(of.categories):
        if faults := names.dns1035_label(name):
            yield invalid(f"{path}.categories[{i}]", name, ",".join(faults))


def _validate_columns(columns: list[CustomResourceColumnDefinition], path: str) -> Iterator[Cause]:
    types, formats = (f"must be one of {','.join(every)}" for every in (COLUMN_TYPES, COLUMN_FORMATS))
    for i, column in enumerate(columns):
        where = f"{path}[{i}]"
        if not column.name:
            yield required(f"{where}.name")
        if not column.type:
            yield required(f"{where}.type", types)
        elif column.type not in COLUMN_TYPES:
            yield invalid(f"{where}.type", column.type, types)
        if column.format and column.format not in COLUMN_FORMATS:
            yield invalid(f"{where}.format", column.format, formats)
        if not column.json_path:
            yield required(f"{where}.JSONPath")
        elif not column.json_path.startswith("."):
            why = "must be a simple json path starting with ."
            yield invalid(f"{where}.JSONPath", column.json_path, why)


def _validate_subresources(subresources: CustomResourceSubresources | None, path: str) -> Iterator[Cause]:
    if subresources is None or (scale := subresources.scale) is None:
        return
    for name, value, roots, told in (
        ("specReplicasPath", scale.spec_replicas_path, (".spec.",), ".spec"),
        ("statusReplicasPath", scale.status_replicas_path, (".status.",), ".status"),
        (
            "labelSelectorPath",
            scale.label_selector_path or None,
            (".spec.", ".status."),
            "either .spec or .status",
        ),
    ):
        where = f"{path}.scale.{name}"
        if value is None:
            continue
        if not value:
            yield required(where)
        elif not value.startswith("."):
            yield invalid(where, value, "must be a simple json path starting with .")
        elif not value.startswith(roots):
            yield invalid(where, value, f"should be a json path under {told}")


def _validate_stored(
    stored: list[str] | None, versions: list[CustomResourceDefinitionVersion]
) -> Iterator[Cause]:
    path = "status.storedVersions"
    if not stored:
        yield invalid(path, stored, "must have at least one stored version")
        return
    missing = {name: i for i, name in enumerate(stored)}
    for version in versions:
        # As in Kubernetes, a name that comes twice is found once.
        if missing.pop(version.name, None) is None and version.storage:
            yield invalid(path, stored, f"must have the storage version {version.name}")
    for name, i in missing.items():
        why = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in "
            f"spec.versions until a storage migration ensures no data remains persisted in {name} and "
            f"removes {name} from status.storedVersions"
        )
        yield invalid(f"{path}[{i}]", name, why)


def _validate_approval(
    new: CustomResourceDefinition, old: CustomResourceDefinition | None
) -> Iterator[Cause]:
    if not is_protected(new.spec.group):
        return
    state, why = approval(new.metadata.annotations)
    if state in ("Approved", "Unapproved") or (old and approval(old.metadata.annotations)[0] == state):
        return
    path = f"metadata.annotations[{APPROVAL}]"
    said = new.metadata.annotations.get(APPROVAL, "")
    yield required(path, why) if state == "Missing" else invalid(path, said, why)


def _validate_preserving(spec: CustomResourceDefinitionSpec) -> Iterator[Cause]:
    if spec.preserve_unknown_fields:
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema "
            "instead"
        )
        yield invalid("spec.preserveUnknownFields", True, why)


def _has_defaults(versions: list[CustomResourceDefinitionVersion]) -> bool:
    roots = (version.schema.open_api_v3_schema for version in versions if version.schema is not None)
    return any(schema.default is not None for root in roots for schema in schemas_in(root))
