"""Validation of an object's metadata and of label selectors, for every kind alike, in Kubernetes' words.

Only the rule for the name differs: most kinds want a DNS subdomain, some a DNS label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from itertools import islice
from typing import Literal

import msgspec

from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    at_least,
    forbidden,
    invalid,
    required,
    too_long,
)
from podling.model import names
from podling.model.codec.fields import wire_name
from podling.model.codec.quoting import quoted
from podling.model.errors import Cause, bad_request
from podling.model.types.meta import LabelSelector, ManagedFieldsEntry, ObjectMeta, OwnerReference
from podling.process.waits import paced

ANNOTATIONS_LIMIT = 256 * 1024
LONGEST_MANAGER, LONGEST_SUBRESOURCE = 128, 256
"""Bytes."""
MOST_TOLD = 256
"""Faults of those who manage fields: each is told with the whole name."""
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
MOST_CONTROLLERS = 8
"""Of how many it is told that they are one too many: each time all owners are listed."""
STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN, FOREGROUND})

NameRule = Callable[[str], list[str]]
Prefix = Literal["masked", "whole", "unjudged"]
"""How the rule for the name is asked of generateName: without a dash at its end, as it is, or not at all."""

_IMMUTABLE = (
    ("name", "name"),
    ("namespace", "namespace"),
    ("uid", "uid"),
    ("creation_timestamp", "creationTimestamp"),
    ("deletion_timestamp", "deletionTimestamp"),
    ("deletion_grace_period_seconds", "deletionGracePeriodSeconds"),
)


def validate(
    meta: ObjectMeta,
    *,
    namespaced: bool = True,
    name_rule: NameRule = names.dns1123_subdomain,
    prefix: Prefix = "masked",
    standard: bool = True,
) -> list[Cause]:
    """`standard`: whether a finalizer without a domain must be one of Kubernetes' own, as it must for its
    older kinds."""
    causes = _validate_name(meta, name_rule, prefix, namespaced=namespaced)
    causes += at_least("metadata.generation", meta.generation, 0)
    return causes + validate_written(meta, standard=standard)


def validate_any(meta: ObjectMeta) -> list[Cause]:
    """Faults of the name of an object, whatever its kind: it is a segment of a path."""
    causes = all_invalid(
        "metadata.generateName", meta.generate_name, names.path_segment_prefix(meta.generate_name)
    )
    if meta.name:
        causes += all_invalid("metadata.name", meta.name, names.path_segment(meta.name))
    else:
        causes.append(required("metadata.name", "name or generateName is required"))
    return causes + at_least("metadata.generation", meta.generation, 0)


def check_name(name: str) -> None:
    """Refuse, with 400, what cannot be part of a path."""
    if faults := names.path_segment(name):
        raise bad_request(f"Name parameter invalid: {quoted(name)}: {', '.join(faults)}")


def validate_written(meta: ObjectMeta, *, standard: bool = True) -> list[Cause]:
    """The faults of what every writer of an object may change of its metadata, a subresource's, too.
    `standard`: as of `validate`."""
    causes = validate_labels(meta.labels, "metadata.labels")
    causes += validate_annotations(meta.annotations, "metadata.annotations")
    causes += _validate_owners(meta.owner_references)
    finalizers, path = meta.finalizers, "metadata.finalizers"
    for finalizer in paced(finalizers):
        causes += all_invalid(path, finalizer, names.qualified_name(finalizer))
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        why = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        causes.append(invalid(path, finalizers, why))
    for i, finalizer in enumerate(paced(finalizers) if standard else ()):
        causes += _validate_standard(finalizer, f"{path}[{i}]")
    return causes


def validate_update(new: ObjectMeta, old: ObjectMeta) -> list[Cause]:
    """What of an object's metadata no update may change."""
    causes = list(islice(managed_faults(new.managed_fields), MOST_TOLD))
    known = frozenset(old.finalizers)
    added = sorted({finalizer for finalizer in new.finalizers if finalizer not in known})
    if old.deletion_timestamp and added:
        listed = ", ".join(f'"{finalizer}"' for finalizer in added)
        why = "no new finalizers can be added if the object is being deleted"
        causes.append(forbidden("metadata.finalizers", f"{why}, found new finalizers []string{{{listed}}}"))
    for attribute, wire in _IMMUTABLE:
        value = getattr(new, attribute)
        if value != getattr(old, attribute):
            causes.append(invalid(f"metadata.{wire}", value if value != "" else None, IMMUTABLE))
    return causes


def managed_faults(entries: Iterable[ManagedFieldsEntry]) -> Iterator[Cause]:
    for number, entry in enumerate(entries):
        path = f"metadata.managedFields[{number}]"
        yield from manager_faults(f"{path}.manager", entry.manager)
        if len(entry.subresource.encode()) > LONGEST_SUBRESOURCE:
            yield too_long(f"{path}.subresource", LONGEST_SUBRESOURCE)


def manager_faults(path: str, manager: str) -> Iterator[Cause]:
    """Of the name of who manages fields."""
    size = len(manager.encode())
    if size > LONGEST_MANAGER:
        yield too_long(path, LONGEST_MANAGER)
    # Each letter is told of with all others.
    if manager.isprintable() or size > 2 * LONGEST_MANAGER:
        return
    for at, letter in enumerate(manager):
        if not letter.isprintable():
            position = len(manager[:at].encode())
            yield invalid(path, manager, f"invalid character U+{ord(letter):04X} (at position {position})")


def validate_labels(labels: dict[str, str], path: str) -> list[Cause]:
    causes = []
    for key, value in paced(labels.items()):
        causes += validate_label_key(key, path)
        causes += all_invalid(path, value, names.label_value(value))
    return causes


def validate_label_key(key: str, path: str) -> list[Cause]:
    return all_invalid(path, key, names.qualified_name(key))


def validate_annotations(annotations: dict[str, str], path: str) -> list[Cause]:
    causes = []
    size = 0
    for key, value in paced(annotations.items()):
        causes += all_invalid(path, key, names.qualified_name(key.lower()))
        size += len(key.encode()) + len(value.encode())
    if size > ANNOTATIONS_LIMIT:
        causes.append(too_long(path, ANNOTATIONS_LIMIT))
    return causes


def validate_finalizer(finalizer: str, path: str) -> Iterator[Cause]:
    """One that stands alone, such as a namespace's own."""
    yield from all_invalid(path, finalizer, names.qualified_name(finalizer))
    yield from _validate_standard(finalizer, path)


def _validate_standard(finalizer: str, path: str) -> Iterator[Cause]:
    if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
        yield invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified")


def _validate_name(meta: ObjectMeta, rule: NameRule, prefix: Prefix, *, namespaced: bool) -> list[Cause]:
    causes = []
    if (begun := meta.generate_name) and prefix != "unjudged":
        # A prefix may end in a dash; the name made of it will not. Kubernetes puts the letter that stands for
        # the rest in place of the last two, so that it takes "X-".
        masked = prefix == "masked" and len(begun) > 1 and begun.endswith("-")
        causes += all_invalid("metadata.generateName", begun, rule(f"{begun[:-2]}a" if masked else begun))
    if not meta.name:
        causes.append(required("metadata.name", "name or generateName is required"))
    else:
        if faults := rule(meta.name):
            causes += all_invalid("metadata.name", meta.name, faults)
    if meta.namespace and not namespaced:
        causes.append(forbidden("metadata.namespace", "not allowed on this type"))
    elif namespaced and not meta.namespace:
        causes.append(required("metadata.namespace"))
    elif namespaced and (faults := names.dns1123_label(meta.namespace)):
        causes += all_invalid("metadata.namespace", meta.namespace, faults)
    return causes


def _validate_owners(owners: list[OwnerReference]) -> list[Cause]:
    causes: list[Cause] = []
    if not owners:
        return causes
    path = "metadata.ownerReferences"
    for owner in owners:
        _, _, version = owner.api_version.rpartition("/")
        if not version or owner.api_version.count("/") > 1:
            causes.append(invalid(f"{path}.apiVersion", owner.api_version, "version must not be empty"))
        for wire, value in (("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)):
            if not value:
                causes.append(invalid(f"{path}.{wire}", value, "must not be empty"))
        if owner.kind == "Event" and owner.api_version in ("v1", "/v1"):
            causes.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
    first, *others = [f"{owner.kind}/{owner.name}" for owner in owners if owner.controller] or [""]
    for other in others[:MOST_CONTROLLERS]:
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{first} and {other}"
        )
        causes.append(invalid(path, owners, why))
    return causes


def validate_template(meta: ObjectMeta, told_empty: Set[str], path: str) -> Iterator[Cause]:
    """Of objects that are made later, which decide the rest of their metadata themselves. `told_empty`: what
    the template has as empty, `metadata.` before it."""
    yield from validate_annotations(meta.annotations, f"{path}.annotations")
    yield from validate_labels(meta.labels, f"{path}.labels")
    bare = msgspec.structs.replace(meta, annotations={}, labels={})
    for attribute in bare.__struct_fields__:
        # As Kubernetes spells it, which takes the names of Go's fields.
        wire = "uID" if attribute == "uid" else wire_name(attribute)
        is_set = getattr(bare, attribute) != getattr(ObjectMeta(), attribute)
        if is_set or f"metadata.{wire}" in told_empty:
            yield forbidden(f"{path}.{wire}", "cannot be set")


def validate_label_selector(selector: LabelSelector | None, path: str) -> Iterator[Cause]:
    if selector is None:
        return
    yield from validate_labels(selector.match_labels, f"{path}.matchLabels")
    for i, expression in enumerate(selector.match_expressions):
        where = f"{path}.matchExpressions[{i}]"
        yield from validate_values(expression.operator, expression.values, where)
        yield from validate_label_key(expression.key, f"{where}.key")
        for j, value in enumerate(expression.values):
            yield from all_invalid(f"{where}.values[{j}]", value, names.label_value(value))


def validate_values(operator: str, values: list[str], path: str) -> Iterator[Cause]:
    """Of a requirement: how many values its operator takes."""
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", why)
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
