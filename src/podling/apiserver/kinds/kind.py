"""What the API server knows about one resource beyond its type: the interface that every file of this room
implements.

A `Kind` is a strategy in Kubernetes' sense: it sets defaults, resets what a writer may not decide, validates,
and shows the object as a table row. It is pure: no storage, no request, and `now` is an argument. The store
calls it in this order:

    create    default > prepare_create > (admission) > validate_create > store
    update    default > prepare_update > (admission) > validate + validate_update > store
    delete    graceful_delete > store or remove

Objects are changed in place; `old` objects must not be. A kind is one subclass, listed in `kinds.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

from podling.apiserver.apply.managed_fields import Fields
from podling.apiserver.authz.authorizers import AccessReviewer
from podling.apiserver.rules import metadata
from podling.model.errors import Cause, StatusError
from podling.model.scheme import Resource
from podling.model.types.meta import DeleteOptions, KubeObject, ObjectMeta

T = TypeVar("T", bound=KubeObject)
S = TypeVar("S", bound=KubeObject)

WRITERS_METADATA = ("labels", "annotations", "finalizers", "owner_references")
UNSET_METADATA = ("deletion_timestamp", "self_link")
PROXY_VERBS = ("create", "delete", "get", "patch", "update")


class Column(NamedTuple):
    """One column of a meta/v1 Table. Priority 0 is always shown, 1 with `kubectl get -o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Part(Generic[T]):
    """A subresource that is the same object, of which only a part may be written, such as `status`.

    It is read, replaced and patched like the object itself, with these rules in place of the kind's.
    """

    name: ClassVar[str]
    verbs: ClassVar[tuple[str, ...]] = ("get", "patch", "update")
    has_tables: bool = True
    """Whether it is shown as a Table to who asks for one."""
    unwritten: Fields = {}
    """The fields that nobody is recorded to manage through this subresource."""
    standard_finalizers: ClassVar[bool] = True
    """As of its kind, where that has them."""
    applies_none: bool = False
    """Apply to it makes the object that there is none of, which PUT does not."""

    def prepare_update(self, new: T, old: T) -> None:
        """Put back into `new` everything of `old` that this subresource may not change."""

    def validate_update(self, new: T, old: T) -> list[Cause]:
        """All changes from `old` to `new` that are not allowed, metadata included."""
        return metadata.validate_update(new.metadata, old.metadata)

    def warnings(self, obj: T) -> Iterable[str]:
        """Warning headers for an object that was written through this subresource."""
        return ()


def keep_metadata(new: ObjectMeta, old: ObjectMeta) -> None:
    """Put back the metadata that its writers decide: a subresource does not write it."""
    for attribute in (*WRITERS_METADATA, *UNSET_METADATA):
        setattr(new, attribute, getattr(old, attribute))


class Status(Part[Any]):
    """The `status` of a kind whose spec its writers decide and whose status a controller does."""

    name = "status"

    def __init__(
        self,
        validate: Callable[[Any, Any], Iterable[Cause]] = lambda new, old: (),
        *,
        warn: Callable[[Any], Iterable[str]] = lambda obj: (),
        keeps_labels: bool = False,
        keeps_metadata: bool = False,
        keeps_unset: bool = True,
        has_tables: bool = True,
        applies_none: bool = False,
    ) -> None:
        """`validate`: the faults of a new status beside the old object. `warn`: what its writer is warned of.
        `keeps_labels`: whether labels, too, stay as they are; `keeps_metadata`: whether all metadata does
        that a writer decides, and `keeps_unset` what nobody does."""
        self._validate, self._warn = validate, warn
        self.has_tables, self.applies_none = has_tables, applies_none
        unset = UNSET_METADATA if keeps_unset else ()
        self._kept = (*WRITERS_METADATA, *unset) if keeps_metadata else ("labels",) if keeps_labels else ()
        if self._kept:
            self.unwritten = {"f:metadata": {} if keeps_metadata else {"f:labels": {}}}

    def prepare_update(self, new: Any, old: Any) -> None:
        new.spec = old.spec
        for attribute in self._kept:
            setattr(new.metadata, attribute, getattr(old.metadata, attribute))

    def validate_update(self, new: Any, old: Any) -> list[Cause]:
        return [*metadata.validate_update(new.metadata, old.metadata), *self._validate(new, old)]

    def warnings(self, obj: Any) -> Iterable[str]:
        return self._warn(obj)


class Posted(Generic[T]):
    """A subresource to which a body of another type is posted."""

    name: ClassVar[str]
    verbs: ClassVar[tuple[str, ...]] = ("create",)
    body: ClassVar[type[KubeObject]]
    """The type of the body; discovery names its kind."""


class Deletion(NamedTuple):
    """A deletion that an action asks for, and what to change of the object while it lasts."""

    options: DeleteOptions
    mark: Callable[[Any], None]


class Action(Posted[T], Generic[T]):
    """A posted body that changes or deletes the object: `binding`, `eviction`."""

    def dry_run(self, body: Any) -> Sequence[str]:
        """What the body itself says of a dry run."""
        return ()

    def effect(self, obj: T, body: Any, now: datetime) -> T | Deletion:
        """What to store in place of `obj`, or how to delete it. Raises StatusError."""
        raise NotImplementedError


class Answer(Posted[T], Generic[T]):
    """A posted body that is answered with its status filled in, and changes nothing: `token`."""

    misnamed: ClassVar[str]
    """The fault of a body with a name that is not the object's."""
    replaced: ClassVar[str]
    """Why a body is refused whose uid, the first of two, is not the object's."""

    def default(self, body: Any) -> None:
        """Fill in what the body leaves out."""

    def validate(self, body: Any) -> list[Cause]:
        return []

    def answer(self, obj: T, body: Any, reviewer: AccessReviewer, now: datetime) -> None:
        """Fill in the status of `body`, which is valid. Raises StatusError."""
        raise NotImplementedError


class Projection(Posted[T], Generic[T]):
    """A part of the object that is read and written as an object of another type: `scale`."""

    verbs = ("get", "patch", "update")
    columns: ClassVar[Sequence[Column]] = ()
    fields: ClassVar[Fields]
    """Those that the object and what is read of it have alike, and that are written."""

    def row(self, body: Any, now: datetime) -> list[Any]:
        """The table cells of what was read, one for each of `columns`."""
        raise NotImplementedError

    def read(self, obj: T) -> KubeObject:
        raise NotImplementedError

    def write(self, obj: T, body: Any) -> None:
        """Change `obj` to what the body, which is valid, says."""
        raise NotImplementedError

    def validate(self, body: Any) -> list[Cause]:
        return []


class Members(Posted[T], Generic[T]):
    """Entries of a list in the object that are posted, read and deleted one at a time; the path has the
    entry's name: `debug/NAME`."""

    verbs = ("create", "delete", "get")

    def rules(self, name: str) -> Part[T]:
        """The rules for a write of the list in a request about the entry `name`."""
        raise NotImplementedError

    def read(self, obj: T, name: str) -> KubeObject:
        """The entry as a `body`. Raises StatusError 404."""
        raise NotImplementedError

    def add(self, obj: T, name: str, body: Any) -> bool:
        """Put the entry into `obj`. False if it removed an ended entry of that name instead, whose name is
        not free yet. Raises StatusError 409."""
        raise NotImplementedError

    def is_free(self, obj: T, name: str) -> bool:
        """Whether the name of a removed entry may be used again."""
        raise NotImplementedError

    def remove(self, obj: T, name: str) -> None:
        """Raises StatusError 404."""
        raise NotImplementedError


class Connect(NamedTuple):
    """A subresource that is a connection to the object's node, such as `log` and `exec`."""

    name: str
    options: str
    """The kind of its query parameters, as discovery names it."""
    verbs: tuple[str, ...] = ("create", "get")
    container_rules: Callable[[str], Part[Any]] | None = None
    """The rules for a new container of a name, where a request may ask for one to be connected to."""
    is_read: bool = False
    """Whether what comes back is read like a part of the object, which admission is not asked about."""
    has_path: bool = False
    """Whether what follows in the path is the node's to read, and the name may say more than a name."""


Subresource = Part[Any] | Action[Any] | Answer[Any] | Projection[Any] | Members[Any] | Connect


class Kept(Generic[T]):
    """Objects of another kind that an object of this one has for as long as it is as it is, such as a
    Service its IPAddresses: they are written in the same transaction."""

    def of(self, obj: T) -> list[KubeObject]:
        raise NotImplementedError

    def going(self, obj: T) -> list[KubeObject]:
        """Objects that somebody else makes, but that go when the object does."""
        return []

    def node_ports(self, obj: T) -> set[int]:
        """Ports of the nodes that belong to the object as long as it has them."""
        return set()

    def asked(self, obj: T) -> Collection[str]:
        """Names and node ports that the writer of `obj` asks for; others are chosen by the server."""
        raise NotImplementedError

    def taken(self, obj: T, name: str) -> StatusError:
        """The refusal of `obj` if the object of this name, or the node port, belongs to another."""
        raise NotImplementedError


class Kind(Generic[T]):
    """The rules of one resource. The methods here are those of a kind without rules of its own."""

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
    kept: Kept[T] | None = None
    ttl: ClassVar[int] = 0
    """Seconds that an object lives after its last write; 0 for ever."""
    columns: ClassVar[Sequence[Column]] = ()
    deprecation: ClassVar[str] = ""
    """What everybody who asks for it is warned of."""
    unattended: ClassVar[str] = ""
    """What everybody who creates one is warned of: that nothing of podling acts on it."""
    has_generation: ClassVar[bool] = False
    """metadata.generation counts changes of anything but metadata and status."""
    begins_at_one: ClassVar[bool] = True
    """A generation that is counted is 1 at first; otherwise it is what the writer says."""
    standard_finalizers: ClassVar[bool] = True
    """A finalizer without a domain must be one of Kubernetes' own."""
    extends_names: ClassVar[bool] = True
    """Whether a name is made of generateName by random letters behind it."""
    judges_prefix_again: ClassVar[bool] = True
    """Whether generateName is validated at an update, too; of some kinds Kubernetes does not."""
    warns_of_changes: ClassVar[bool] = False
    """Who updates it is warned only if the generation counts the update."""
    tells_changes_first: ClassVar[bool] = False
    """What may not change comes before the faults that the updated object has by itself."""
    cached: ClassVar[bool] = True
    """Kubernetes has a cache of it: a list of any version is whole, whatever its limit."""
    creates_on_update: ClassVar[bool] = False
    """PUT of a name that does not exist creates it."""
    updates_unconditionally: ClassVar[bool] = True
    """PUT without a resourceVersion overwrites; otherwise it is refused with 422."""
    validates_long: ClassVar[bool] = False
    """Validation takes long, however short the object is, and is done in a thread."""
    own_deletion: ClassVar[bool] = False
    """Kubernetes deletes it in a way of its own: preconditions are refused in other words, and
    metadata.generation does not count the deletion."""
    has_grace: ClassVar[bool] = False
    """A deletion waits for a time, if only for none."""
    returns_deleted: ClassVar[bool] = False
    """DELETE that removes the object answers with it, not with a Status."""
    has_dependents: ClassVar[bool] = True
    """A deletion may say what becomes of those that it owns."""
    orphans: ClassVar[bool] = False
    """A deletion that names no propagation policy leaves the dependents."""
    deletion_warning: ClassVar[str] = ""
    """What everybody is warned of whose deletion names no propagation policy."""
    unwritten: ClassVar[Fields] = {}
    """The fields that nobody is recorded to manage but through a subresource, besides the status."""
    selectable_fields: ClassVar[Mapping[str, Callable[[Any], str]]] = {}
    """What a field selector may name, besides metadata.name and metadata.namespace, and how it reads."""
    unselectable: ClassVar[str] = "field label not supported: {}"
    """What a selector of such a kind is told that names another field."""

    def default(self, obj: T) -> None:
        """Set the defaults of fields that the writer left out."""

    def prepare_create(self, obj: T, now: datetime) -> None:
        """Reset fields that the writer of a new object may not decide, such as status."""

    def prepare_update(self, new: T, old: T) -> None:
        """Put back fields that a writer of the object (not of a subresource) may not change, such
        as status."""

    def validate(self, obj: T) -> list[Cause]:
        """All faults of `obj` by itself, metadata included."""
        return []

    def validate_create(self, obj: T) -> list[Cause]:
        """All faults of a new object."""
        return self.validate(obj)

    def counts(self, obj: T) -> bool:
        """Whether the generation counts how the object was sent, whatever has changed."""
        return False

    def validate_changed(self, new: T, old: T) -> list[Cause]:
        """As `validate`, for an updated object; may skip parts that are the same in `old`."""
        return self.validate(new)

    def validate_update(self, new: T, old: T) -> list[Cause]:
        """All changes from `old` to `new` that are not allowed, metadata included."""
        return metadata.validate_update(new.metadata, old.metadata)

    def warnings(self, obj: T) -> list[str]:
        """Warning headers for a created or updated object."""
        return []

    def create_warnings(self, obj: T) -> list[str]:
        """Warning headers for a created object, also that nothing acts on it."""
        return [*self.warnings(obj), self.unattended] if self.unattended else self.warnings(obj)

    def update_warnings(self, obj: T, old: T) -> list[str]:
        """Warning headers for an updated object."""
        is_same = self.warns_of_changes and obj.metadata.generation == old.metadata.generation
        return [] if is_same else self.warnings(obj)

    def row_order(self, obj: T) -> Any:
        """What the rows of a list are sorted by; where all say the same they come as the list does."""
        return ()

    def row(self, obj: T, now: datetime) -> list[Any]:
        """The table cells of `obj`, one for each of `columns`, as JSON values."""
        return [obj.metadata.name, obj.metadata.creation_timestamp]

    def row_conditions(self, obj: T) -> Sequence[Mapping[str, str]]:
        """The conditions of the row."""
        return ()

    def graceful_delete(self, obj: T, options: DeleteOptions, now: datetime) -> bool:
        """Begin the deletion of `obj`: True if it was marked and stays for now, False if it can be removed at
        once. Finalizers are not considered here: the store handles them for all kinds."""
        return False

    def may_vanish(self, new: T, old: T) -> bool:
        """Whether an object being deleted, just updated, can be removed because nothing holds it any more."""
        return not new.metadata.finalizers and not old.metadata.deletion_grace_period_seconds


class Controlled(Kind[T]):
    """A kind whose writers decide the spec, and of whose status only a controller writes, through the
    subresource `status`."""

    has_generation = True
    returns_deleted = False
    subresources: Mapping[str, Subresource] = {"status": Status()}

    def prepare_create(self, obj: T, now: datetime) -> None:
        body: Any = obj
        body.status = type(body.status)()

    def prepare_update(self, new: T, old: T) -> None:
        body, standing = cast(Any, new), cast(Any, old)
        body.status = standing.status


class View(Kind[T], Generic[T, S]):
    """Another version of a stored kind, such as autoscaling/v1 of autoscaling/v2.

    Only defaults, selectable fields and flags are its own. All rules are those of `stored`, and look at what
    is stored.
    """

    stored: ClassVar[Kind[Any]]
    """The stored kind, with rules of this version if it has any."""

    def to_stored(self, obj: T) -> S:
        """Shares parts with `obj`."""
        raise NotImplementedError

    def from_stored(self, obj: S) -> T:
        """Shares parts with `obj`."""
        raise NotImplementedError


def kept_as(kind: Kind[Any]) -> Resource:
    """The resource under whose keys the objects of `kind` are stored; another one for a View."""
    return kind.stored.resource if isinstance(kind, View) else kind.resource


def storage_key(resource: Resource, namespace: str = "", name: str = "") -> str:
    """The storage key of an object; without `name` the prefix of its namespace, without both that of the
    resource."""
    group = f"{resource.group}/" if resource.group else ""
    place = f"/registry/{group}{resource.plural}/"
    if namespace:
        place += f"{namespace}/"
    return place + name
