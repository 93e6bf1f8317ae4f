"""The base classes of the API types, and the metadata of their fields.

`Part` and `Object` give every type its wire form. Attributes are snake_case; the wire name is Kubernetes'
camelCase with its acronyms (`pod_ip` is `podIP`). A field left at its default is not written (Go's
`omitempty`); `always(...)` marks the fields that Go writes even when they are zero, `null()` the times that
Go writes as null.

`Annotated` metadata of a field says how it is merged (`Annotated[list[Container], by("name")]`: patch
strategy, merge key, list type) and which OpenAPI format it has. `fields_of` reads it back for strategic merge
patch, server-side apply and the published OpenAPI. This module imports no API type, so that all of them can
import it.
"""

import functools
import operator
import typing
from collections.abc import Callable, Iterator, Set
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

T = TypeVar("T")

_ACRONYMS = "api cidr cpu fqdn id io ip ipc pid tls uri url uuid wwn"
ACRONYMS = frozenset(_ACRONYMS.split())
"""Words that Kubernetes writes in capitals unless they begin the name. A plural s stays small (`hostIPs`)."""
TOLD_EMPTY = "told_empty"
"""Where a part keeps which fields were sent empty."""
INTEGERS = {
    "int32": range(-(1 << 31), 1 << 31),
    "int64": range(-(1 << 63), 1 << 63),
    "uint8": range(1 << 8),
}
"""What integers of each format hold."""


def wire_name(attribute: str) -> str:
    """`host_ips` → `hostIPs`; a trailing underscore only avoids a Python keyword (`from_` → `from`)."""
    name, *rest = attribute.rstrip("_").split("_")
    for word in rest:
        if word in ACRONYMS:
            name += word.upper()
        else:
            name += word[:-1].upper() + "s" if word[:-1] in ACRONYMS else word[:1].upper() + word[1:]
    return name


def always(zero: Callable[[], T]) -> T:
    """A field that is written even when it is zero or empty: `ready: bool = always(bool)`. `zero` makes the
    default."""
    # A list made by `list` itself msgspec knows to be empty by default, and leaves out.
    make: Callable[[], Any] = functools.partial(list) if zero is list else zero
    made: T = msgspec.field(default_factory=make)
    return made


def null() -> Any:
    """A field that is written as `null` until it is set, as Go writes a zero time, and a pointer without
    `omitempty`: `time: Time | None = null()`."""
    return msgspec.field(default_factory=NoneType)


class Part(msgspec.Struct, rename=wire_name, omit_defaults=True):
    """A struct inside an API object."""

    ATOMIC: ClassVar[bool] = False
    """Whether server-side apply replaces it whole (`x-kubernetes-map-type: atomic`)."""
    GO_NAME: ClassVar[str] = ""
    """What Go calls the type, where that is not its name here."""


class Telling(Part, dict=True):
    """A part of which Kubernetes refuses some fields for being there at all, though empty.

    Decoded, a list that was left out and an empty one are the same, so the part keeps beside its fields which
    were sent.
    """

    TELLS: ClassVar[tuple[str, ...]] = ()
    """The fields: wire names, and with a dot those of a struct in a field."""


def told_empty(part: Telling) -> Set[str]:
    """Those of `TELLS` that were sent as `[]` or `{}`."""
    told: Set[str] = part.__dict__.get(TOLD_EMPTY, frozenset())
    return told


class NotConvertibleError(ValueError):
    """An object says what Kubernetes' own type for it has no room for; the message is Go's."""


class Object(Part):
    """A top-level API type. `kind` and `apiVersion` are filled in, so an encoded object begins with them."""

    KIND: ClassVar[str] = ""
    API_VERSION: ClassVar[str] = ""

    kind: str = ""
    api_version: str = ""

    def __post_init__(self) -> None:
        if not self.kind:
            self.kind = self.KIND
        said = self.api_version
        if said != self.API_VERSION and (self.leaves_out_version(said) or self.is_of_version(said)):
            self.api_version = self.API_VERSION

    @classmethod
    def is_of_version(cls, api_version: Any) -> bool:
        """Whether that is the type's own. The group that has no name may be said, too."""
        own = cls.API_VERSION
        return api_version == own or ("/" not in own and api_version == f"/{own}")

    @classmethod
    def leaves_out_version(cls, api_version: str) -> bool:
        """Whether that says no version; it may say the group all the same."""
        return api_version in ("", "/", f"{cls.API_VERSION.rpartition('/')[0]}/")


class Merge(msgspec.Struct, frozen=True):
    """Field metadata: how patch and apply merge the field.

    `strategies` are the words of `x-kubernetes-patch-strategy`, `key` is `x-kubernetes-patch-merge-key`;
    strategic merge patch uses both. `list_type` (`map`, `set`, `atomic`), `list_map_keys` and `map_type` are
    `x-kubernetes-list-type`, `-list-map-keys` and `-map-type`; server-side apply uses them.
    """

    strategies: tuple[str, ...] = ()
    key: str = ""
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""


def by(key: str, *, keys: tuple[str, ...] = (), retain_keys: bool = False) -> Merge:
    """A list merged by item: by `key` in strategic merge, by `keys` (default: it) in server-side apply."""
    strategies = ("merge", "retainKeys") if retain_keys else ("merge",)
    return Merge(strategies, key, "map", keys or (key,))


def patched_by(key: str, list_type: str = "atomic") -> Merge:
    """A list that strategic merge patches by `key` although server-side apply does not treat it as a map."""
    return Merge(("merge",), key, list_type)


def keyed(*keys: str) -> Merge:
    """A list that is a map to server-side apply and is replaced whole by strategic merge patch."""
    return Merge((), "", "map", keys)


RETAIN_KEYS = Merge(("retainKeys",))
"""A union: a patch that names another member clears the members it does not name."""
MERGED_SET = Merge(("merge",), "", "set")
"""Primitives, merged as a set."""
SET = Merge((), "", "set")
ATOMIC_MAP = Merge(map_type="atomic")
"""A map or struct replaced whole by server-side apply."""
GRANULAR_MAP = Merge(map_type="granular")
"""A map or struct merged by key, which is said although it goes without saying."""
ATOMIC_LIST = Merge((), "", "atomic")
"""Said of what is no list to JSON, such as bytes."""
UNDECLARED = Merge()


class Format(msgspec.Struct, frozen=True):
    """Field metadata: the OpenAPI format."""

    name: str


Int32 = Annotated[int, Format("int32"), msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, Format("int64"), msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
IntOrString = Int32 | str
"""A port's number or name. In `FieldInfo.type` it equals `int | str`."""
# Go refuses `""` for a time. So does podling, which holds what podling itself sends to it.
Time = Annotated[str, Format("date-time"), msgspec.Meta(min_length=1)]
"""RFC 3339, whole seconds, UTC. Unset it is left out (`Time = ""`) or null (`Time | None = null()`)."""
MicroTime = Annotated[str, Format("micro-time"), msgspec.Meta(min_length=1)]
"""RFC 3339 with microseconds; OpenAPI calls it date-time too."""


JSON = Annotated[Any, Format("json")]
"""Any value at all, kept as it is. null is none."""


class Shape(msgspec.Struct, frozen=True):
    """What a type is made of, worked out once for whoever walks an object by its type."""

    type: Any
    """Without `None` and without `Annotated`."""
    holds: type[list[Any]] | type[dict[str, Any]] | None = None
    """`list`, or `dict` for a map; its items or values have the shape `item`."""
    item: "Shape | None" = None
    struct: type[msgspec.Struct] | None = None
    """`type`, if it is a struct."""
    part: type[msgspec.Struct] | None = None
    """The struct that `type` is, or that its lists and maps hold in the end."""
    choices: "tuple[Shape, ...]" = ()
    """Of a field that is either a struct or something else, which its JSON shows: the shape of each."""
    may_be_null: bool = False
    """The type includes None. A map keeps such values (`dict[str, Time | None]`: Go's zero time)."""


class FieldInfo(msgspec.Struct, frozen=True):
    """One field of an API type: attribute, wire name, type, merging, OpenAPI format (of its items)."""

    attribute: str
    wire: str
    type: Any
    shape: Shape
    merge: Merge
    format: str
    always: bool
    """It is written even if it is zero or empty."""


@functools.cache
def shape_of(type_: Any) -> Shape:
    """The shape of a type, which may be a struct, a scalar, or lists and maps of such."""
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (UnionType, typing.Union):
        members = [member for member in arguments if member is not NoneType]
        choices = tuple(shape_of(member) for member in members) if len(members) > 1 else ()
        is_choice = any(choice.struct for choice in choices)
        alone = (
            shape_of(functools.reduce(operator.or_, members))
            if NoneType in arguments
            else Shape(type_, choices=choices if is_choice else (), part=choices[0].struct)
        )
        return msgspec.structs.replace(alone, may_be_null=NoneType in arguments)
    if origin in (list, dict):
        item = shape_of(arguments[-1])
        return Shape(type_, origin, item, part=item.part)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return Shape(type_, struct=type_, part=type_)
    return Shape(type_)


@functools.cache
def fields_of(owner: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    """The fields of an API type by wire name, in wire order."""
    annotations = typing.get_type_hints(owner, include_extras=True)
    all_said = {name: list(_said_of(annotation)) for name, annotation in annotations.items()}
    # A reading evaluates every annotation from its text: a second only where `Annotated` is to be left out.
    types = typing.get_type_hints(owner) if any(all_said.values()) else annotations
    found = {}
    for field in msgspec.structs.fields(owner):
        said, shape = all_said[field.name], shape_of(types[field.name])
        found[field.encode_name] = FieldInfo(
            field.name,
            field.encode_name,
            shape.type,
            shape,
            merge=next((each for each in said if isinstance(each, Merge)), UNDECLARED),
            format=next((each.name for each in said if isinstance(each, Format)), ""),
            # A default that is `list` itself is left out when it is empty.
            always=field.default_factory not in (msgspec.NODEFAULT, list),
        )
    return found


def _said_of(annotation: Any) -> Iterator[Any]:
    """All `Annotated` metadata of a type: that of the field first, then that of the types inside it."""
    yield from getattr(annotation, "__metadata__", ())
    for argument in typing.get_args(annotation):
        if isinstance(argument, type) or hasattr(argument, "__args__"):
            yield from _said_of(argument)
