"""What every API type is made of: wire names, omitted and always-present fields, kind and apiVersion.

Attributes are snake_case; the wire name is Kubernetes' camelCase, with its acronyms (`pod_ip` is `podIP`). A
field left at its default is not written (Go's `omitempty`); `always(...)` marks the fields Go writes even
when zero, `null()` the times Go writes as null.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, ClassVar, TypeVar

import msgspec

T = TypeVar("T")

ACRONYMS = frozenset(
    [
        "api",
        "cidr",
        "cidrs",
        "fqdn",
        "id",
        "ids",
        "io",
        "ip",
        "ipc",
        "ips",
        "pid",
        "uri",
        "url",
        "urls",
        "uuid",
        "wwns",
    ]
)
"""Words that Kubernetes writes in capitals when they do not begin the name (a plural s stays small)."""


def wire_name(attribute: str) -> str:
    """`host_ips` → `hostIPs`; a trailing underscore only avoids a Python keyword (`from_` → `from`)."""
    first, *rest = attribute.rstrip("_").split("_")
    return first + "".join(_capitalized(word) for word in rest)


def _capitalized(word: str) -> str:
    if word not in ACRONYMS:
        return word[:1].upper() + word[1:]
    return word[:-1].upper() + "s" if word.endswith("s") else word.upper()


def always(zero: Callable[[], T]) -> T:
    """A field that is written even when it is zero or empty: `ready: bool = always(bool)`."""
    # A list made by `list` itself msgspec knows to be empty by default, and leaves out.
    made: T = msgspec.field(default_factory=_empty_list if zero is list else zero)
    return made


def _empty_list() -> Any:
    return []


def null() -> str | None:
    """A time that is written as `null` until it is set, as Go writes it: `time: Time | None = null()`."""
    made: str | None = msgspec.field(default_factory=NoneType)
    return made


class Part(msgspec.Struct, rename=wire_name, omit_defaults=True):
    """A struct inside an API object."""

    ATOMIC: ClassVar[bool] = False
    """Whether server-side apply replaces it whole (`x-kubernetes-map-type: atomic`)."""


class Object(Part):
    """A top-level API type. `kind` and `apiVersion` are filled in, so an encoded object begins with them."""

    KIND: ClassVar[str] = ""
    API_VERSION: ClassVar[str] = ""

    kind: str = ""
    api_version: str = ""

    def __post_init__(self) -> None:
        if not self.kind:
            self.kind = self.KIND
        if not self.api_version:
            self.api_version = self.API_VERSION
