"""core/v1: references from one object to another, or to a key in one."""

from typing import ClassVar

from podling.model.codec.fields import Part, always, null
from podling.model.quantity import Quantity


class LocalObjectReference(Part):
    ATOMIC: ClassVar[bool] = True

    name: str = ""


class TypedLocalObjectReference(Part):
    ATOMIC: ClassVar[bool] = True

    api_group: str | None = null()
    kind: str = always(str)
    name: str = always(str)


class TypedObjectReference(Part):
    api_group: str | None = null()
    kind: str = always(str)
    name: str = always(str)
    namespace: str | None = None


class ObjectReference(Part):
    ATOMIC: ClassVar[bool] = True

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class ObjectFieldSelector(Part):
    ATOMIC: ClassVar[bool] = True

    api_version: str = ""
    field_path: str = always(str)


class ResourceFieldSelector(Part):
    ATOMIC: ClassVar[bool] = True

    container_name: str = ""
    resource: str = always(str)
    divisor: Quantity | None = None


class ConfigMapKeySelector(Part):
    ATOMIC: ClassVar[bool] = True

    name: str = ""
    key: str = always(str)
    optional: bool | None = None


class SecretKeySelector(Part):
    ATOMIC: ClassVar[bool] = True

    name: str = ""
    key: str = always(str)
    optional: bool | None = None
