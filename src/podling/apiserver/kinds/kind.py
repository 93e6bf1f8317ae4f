"""What the API server knows of one resource beyond its type: the promise every file of this room keeps.

A `Kind` is a strategy in Kubernetes' sense: it fills in defaults, says what a writer may not decide, finds
faults, and shows the object as a table row. It is pure: no storage, no request; `now` is an argument. The
store beside it calls it in this order:

    create    default > prepare_create > (admission) > validate_create > store
    update    default > prepare_update > (admission) > validate + validate_update > store
    delete    graceful_delete > store or remove

Objects are changed in place; `old` objects are read only. A kind is one subclass in one file, listed in
`kinds.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from podling.apiserver.authz.reviewer import AccessReviewer
from podling.model.errors import Cause
from podling.model.scheme import Resource
from podling.model.types.meta import DeleteOptions, KubeObject

T = TypeVar("T", bound=KubeObject)
S = TypeVar("S", bound=KubeObject)


class Column(NamedTuple):
    """One column of a meta/v1 Table. Priority 0 is always shown, 1 with `kubectl get -o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Part(Generic[T]):
    """A subresource that is the same object, of which only a part may be written, such as `status`.

    Read, replaced and patched like the object itself, with these rules in place of the kind's.
    """

    name: ClassVar[str]
    verbs: ClassVar[tuple[str, ...]] = ("get", "patch", "update")

    def prepare_update(self, new: T, old: T) -> None:
        """Put back in `new` everything of `old` that this subresource may not change."""

    def validate_update(self, new: T, old: T) -> list[Cause]:
        return []


class Posted(Generic[T]):
    """A subresource that is posted a body of another type to."""

    name: ClassVar[str]
    verbs: ClassVar[tuple[str, ...]] = ("create",)
    body: ClassVar[type[KubeObject]]
    """The type of the body; discovery names its kind."""


class Deletion(NamedTuple):
    """How to delete an object, and what to say of it while it goes."""

    options: DeleteOptions
    mark: Callable[[Any], None]


class Action(Posted[T], Generic[T]):
    """A body that changes the object: `binding`, `eviction`."""

    def effect(self, obj: T, body: Any, now: datetime) -> T | Deletion:
        """What becomes of `obj`: what to store in its place, or how to delete it. Raises StatusError."""
        raise NotImplementedError


class Answer(Posted[T], Generic[T]):
    """A body that comes back with an answer in it, and changes nothing: `token`."""

    def validate(self, body: Any) -> list[Cause]:
        return []

    def answer(self, obj: T, body: Any, reviewer: AccessReviewer, now: datetime) -> None:
        """Fill in the status of `body`, which is valid. Raises StatusError."""
        raise NotImplementedError


class Members(Posted[T], Generic[T]):
    """Entries of a list in the object that are posted, read and deleted one at a time, by the name that
    follows in the path: `debug/NAME`.
    """

    verbs = ("create", "delete", "get")

    def rules(self, name: str) -> Part[T]:
        """The rules to write the list by, on behalf of a request about the entry `name`."""
        raise NotImplementedError

    def read(self, obj: T, name: str) -> KubeObject:
        """The entry as a `body`. Raises StatusError 404."""
        raise NotImplementedError

    def add(self, obj: T, name: str, body: Any) -> bool:
        """Put the entry into `obj`; False when its name had to be let go of first. Raises StatusError 409."""
        raise NotImplementedError

    def is_free(self, obj: T, name: str) -> bool:
        """Whether a name that was let go of may be used again."""
        raise NotImplementedError

    def remove(self, obj: T, name: str) -> None:
        """Raises StatusError 404."""
        raise NotImplementedError


class Connect(NamedTuple):
    """A subresource that is a connection to the node of the object, such as `log` and `exec`."""

    name: str
    options: str
    """The kind of its query parameters, as discovery names it."""
    verbs: tuple[str, ...] = ("create", "get")
    container_rules: Callable[[str], Part[Any]] | None = None
    """The rules for a new container of a name, where a request may ask for one to be connected to."""
    has_path: bool = False
    """Whether what follows in the path is the node's to read, and the name may say more than a name."""


PROXY_VERBS = ("create", "delete", "get", "patch", "update")

Subresource = Part[Any] | Action[Any] | Answer[Any] | Members[Any] | Connect


class Kind(Generic[T]):
    """The rules of one resource. The defaults here are those of a kind that has no rules of its own."""

    resource: ClassVar[Resource]
    verbs: ClassVar[tuple[str, ...]] = (
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    )
    subresources: Mapping[str, Subresource] = {}
    columns: ClassVar[Sequence[Column]] = ()
    deprecation: ClassVar[str] = ""
    """What everybody who asks for it is warned of."""
    has_generation: ClassVar[bool] = False
    """metadata.generation counts changes of anything but metadata and status."""
    creates_on_update: ClassVar[bool] = False
    """PUT of a name that does not exist creates it."""
    updates_unconditionally: ClassVar[bool] = True
    """PUT without a resourceVersion overwrites; otherwise it is refused with 422."""
    returns_deleted: ClassVar[bool] = False
    """DELETE that removes the object answers with it, not with a Status."""
    selectable_fields: ClassVar[Mapping[str, Callable[[Any], str]]] = {}
    """What a field selector may name, besides metadata.name and metadata.namespace, and how it reads."""

    def default(self, obj: T) -> None:
        """Fill in what the writer left open."""

    def prepare_create(self, obj: T, now: datetime) -> None:
        """Clear or set what the writer of a new object may not decide, such as status."""

    def prepare_update(self, new: T, old: T) -> None:
        """Put back what a writer of the object (not of a subresource) may not change, such as status."""

    def validate(self, obj: T) -> list[Cause]:
        """Everything wrong with `obj` alone, metadata included."""
        return []

    def validate_create(self, obj: T) -> list[Cause]:
        """Everything wrong with a new object."""
        return self.validate(obj)

    def validate_changed(self, new: T, old: T) -> list[Cause]:
        """As `validate`, of what an update has made of `old`: what stood before need not be judged again."""
        return self.validate(new)

    def validate_update(self, new: T, old: T) -> list[Cause]:
        """Everything about `new` that may not follow `old`, metadata included."""
        return []

    def warnings(self, obj: T) -> list[str]:
        """What is accepted but better not written: Warning headers."""
        return []

    def update_warnings(self, obj: T) -> list[str]:
        """Of what an update made of it: the same, unless a kind is updated by others than write it."""
        return self.warnings(obj)

    def row(self, obj: T, now: datetime) -> list[Any]:
        """The cells of `obj` under `columns`, JSON-ready."""
        return [obj.metadata.name, obj.metadata.creation_timestamp]

    def graceful_delete(self, obj: T, options: DeleteOptions, now: datetime) -> bool:
        """Begin the deletion of `obj`: True when it is marked and stays for now, False to remove it at once.

        Finalizers are not looked at here: they hold every kind alike.
        """
        return False

    def may_vanish(self, new: T, old: T) -> bool:
        """After an update of an object being deleted: nothing holds it any more, remove it."""
        return not new.metadata.finalizers and old.metadata.deletion_grace_period_seconds == 0


class View(Kind[T], Generic[T, S]):
    """Another version of a kind that is kept in storage, such as events.k8s.io/v1 of core Event."""

    stored: ClassVar[Kind[Any]]

    def to_stored(self, obj: T) -> S:
        raise NotImplementedError

    def from_stored(self, obj: S) -> T:
        raise NotImplementedError


def storage_key(resource: Resource, namespace: str = "", name: str = "") -> str:
    """Where an object is kept; without name the prefix of its namespace, without both of the resource."""
    group = f"{resource.group}/" if resource.group else ""
    place = f"/registry/{group}{resource.plural}/"
    if namespace:
        place += f"{namespace}/"
    return place + name
