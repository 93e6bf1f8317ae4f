"""The kinds of resource.k8s.io: what devices there are, in which classes, and what pods claim of them.

Nothing of podling's allocates devices: claims are stored, and served to drivers and to a scheduler that does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar, TypeVar

import msgspec

from podling.apiserver.cel.checker import faults
from podling.apiserver.kinds.columns import AGE, NAME, age
from podling.apiserver.kinds.kind import Column, Controlled, Kind, Status
from podling.apiserver.rules import metadata
from podling.apiserver.rules.devices.claim_status import validate_claim_status
from podling.apiserver.rules.devices.claims import (
    default_claim,
    default_tolerations,
    expressions_of_claim,
    validate_claim,
    validate_class,
)
from podling.apiserver.rules.devices.parts import expressions_of
from podling.apiserver.rules.devices.slices import drop_gated, validate_slice
from podling.apiserver.rules.field import IMMUTABLE, internal, invalid, shown
from podling.model import names
from podling.model.codec.fields import told_empty
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.resource import (
    DeviceClass,
    ResourceClaimObject,
    ResourceClaimTemplate,
    ResourceSlice,
)

T = TypeVar("T", bound=KubeObject)

NO_DEVICES = "podling has no controller that allocates devices: it is kept for other programs"
NO_DRIVERS = "podling has no DRA drivers: it is kept for other programs"


class _Devices(Kind[T]):
    returns_deleted = True
    name_rule: ClassVar[metadata.NameRule] = names.dns1123_subdomain
    prefix: ClassVar[metadata.Prefix] = "masked"
    columns: ClassVar[Sequence[Column]] = (NAME, AGE)

    def validate(self, obj: T) -> list[Cause]:
        """Of a new object."""
        return [*self._validate_metadata(obj), *self.validate_spec(obj, None)]

    def validate_changed(self, new: T, old: T) -> list[Cause]:
        return self._validate_metadata(new)

    def _validate_metadata(self, obj: T) -> list[Cause]:
        rule, namespaced = type(self).name_rule, self.resource.namespaced
        return metadata.validate(obj.metadata, namespaced=namespaced, name_rule=rule, prefix=self.prefix)

    def validate_update(self, new: T, old: T) -> list[Cause]:
        return [*metadata.validate_update(new.metadata, old.metadata), *self.validate_spec(new, old)]

    def validate_spec(self, new: T, old: T | None) -> Iterator[Cause]:
        raise NotImplementedError

    def row(self, obj: T, now: datetime) -> list[Any]:
        return [obj.metadata.name, age(obj.metadata.creation_timestamp, now)]


class _Template(ObjectMeta):
    """The metadata and the spec of a template, as Kubernetes shows them: the one beside the other."""

    spec: Any = msgspec.field(name="Spec", default=None)


class DeviceClasses(_Devices[DeviceClass]):
    validates_long = True
    resource = resource_of(DeviceClass)
    judges_prefix_again = False
    name_rule = names.long_name
    prefix: ClassVar[metadata.Prefix] = "unjudged"
    unattended = NO_DEVICES
    has_generation = True

    def validate_spec(self, new: DeviceClass, old: DeviceClass | None) -> Iterator[Cause]:
        if old is not None and new.spec.selectors == old.spec.selectors:
            return validate_class(new.spec, {}, old.spec)
        found = faults(dict(expressions_of(new.spec.selectors, "spec.selectors")))
        return validate_class(new.spec, found, old.spec if old is not None else None)


class ResourceClaims(_Devices[ResourceClaimObject], Controlled[ResourceClaimObject]):
    validates_long = True
    resource = resource_of(ResourceClaimObject)
    unattended = NO_DEVICES
    has_generation = False
    subresources = {"status": Status(validate_claim_status, keeps_metadata=True, has_tables=False)}
    columns = (NAME, Column("State", description="Whether it has devices, and whether they are used."), AGE)

    def default(self, obj: ResourceClaimObject) -> None:
        default_claim(obj.spec.devices)
        if obj.status.allocation is not None:
            for result in obj.status.allocation.devices.results:
                default_tolerations(result.tolerations)

    def validate_spec(self, new: ResourceClaimObject, old: ResourceClaimObject | None) -> Iterator[Cause]:
        if old is None:
            found = faults(dict(expressions_of_claim(new.spec.devices, "spec.devices")))
            yield from validate_claim(new.spec.devices, found, "spec.devices")
        elif new.spec != old.spec:
            yield invalid("spec", internal(new.spec), IMMUTABLE)

    def row(self, obj: ResourceClaimObject, now: datetime) -> list[Any]:
        states = ["deleted"] if obj.metadata.deletion_timestamp else []
        if obj.status.allocation is None:
            states = states or ["pending"]
        else:
            states += ["allocated", "reserved"] if obj.status.reserved_for else ["allocated"]
        return [obj.metadata.name, ",".join(states), age(obj.metadata.creation_timestamp, now)]


class ResourceClaimTemplates(_Devices[ResourceClaimTemplate]):
    validates_long = True
    resource = resource_of(ResourceClaimTemplate)
    unattended = NO_DEVICES

    def default(self, obj: ResourceClaimTemplate) -> None:
        default_claim(obj.spec.spec.devices)

    def validate_spec(self, new: ResourceClaimTemplate, old: ResourceClaimTemplate | None) -> Iterator[Cause]:
        told = told_empty(new.spec)
        if old is not None and new.spec == old.spec and not told:
            return
        yield from metadata.validate_template(new.spec.metadata, told, "spec.metadata")
        found = faults(dict(expressions_of_claim(new.spec.spec.devices, "spec.spec.devices")))
        yield from validate_claim(new.spec.spec.devices, found, "spec.spec.devices")
        if old is not None and new.spec != old.spec:
            meta = msgspec.structs.asdict(new.spec.metadata)
            yield invalid("spec", _Template(**meta, spec=internal(new.spec.spec)), IMMUTABLE)


class ResourceSlices(_Devices[ResourceSlice]):
    resource = resource_of(ResourceSlice)
    judges_prefix_again = False
    unattended = NO_DRIVERS
    has_generation = True
    columns = (
        NAME,
        Column("Node", description="The node whose devices these are."),
        Column("Driver", description="Whose devices these are."),
        Column("Pool", description="The pool of devices that the slice is a part of."),
        AGE,
    )
    selectable_fields = {
        "spec.nodeName": lambda obj: obj.spec.node_name or "",
        "spec.driver": lambda obj: obj.spec.driver,
    }
    unselectable = "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}"

    def prepare_create(self, obj: ResourceSlice, now: datetime) -> None:
        drop_gated(obj.spec)

    def prepare_update(self, new: ResourceSlice, old: ResourceSlice) -> None:
        if new.spec != old.spec:
            # What is dropped counts as a change, too.
            new.metadata.generation = old.metadata.generation + 1
        drop_gated(new.spec)

    def validate_spec(self, new: ResourceSlice, old: ResourceSlice | None) -> Iterator[Cause]:
        return validate_slice(new.spec, old.spec if old is not None else None)

    def warnings(self, obj: ResourceSlice) -> list[str]:
        driver = obj.spec.driver
        if driver == driver.lower():
            return []
        return [
            f"spec.driver: driver names should be lowercase; {shown(driver)} contains uppercase characters"
        ]

    def row(self, obj: ResourceSlice, now: datetime) -> list[Any]:
        spec = obj.spec
        return [
            obj.metadata.name,
            spec.node_name or "",
            spec.driver,
            spec.pool.name,
            age(obj.metadata.creation_timestamp, now),
        ]
