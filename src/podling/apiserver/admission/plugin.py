"""What an admission plugin is, and what it is told about a write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import msgspec

from podling.apiserver.admission.forms import Form
from podling.apiserver.authz.authorizers import Opinion
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec import json
from podling.model.errors import StatusError, forbidden
from podling.model.scheme import Resource
from podling.model.types.meta import KubeObject

T = TypeVar("T", bound=KubeObject)

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
Handles = Mapping[str, tuple[Operation, ...]]
May = Callable[[User, RequestInfo], Opinion]
"""Asks the authorizers. Raises Unanswered."""
ANY = "*"


class Sent(Protocol):
    """The request behind a write, for who is asked about it from outside: webhooks and policies."""

    @property
    def forms(self) -> Sequence[Form]:
        """What is written in the version that the request is of, and then in each that is the same. Empty for
        what the server does itself: nobody is asked about it."""
        ...

    @property
    def options(self) -> Mapping[str, Any] | None:
        """CreateOptions, UpdateOptions or DeleteOptions as data; None for a connection."""
        ...

    @property
    def warnings(self) -> list[str]:
        """The Warning headers of the answer. May be added to."""
        ...

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of the request's audit event. May be added to."""
        ...


class Reinvocation(msgspec.Struct):
    """Which policies, by policy, binding and parameter, were evaluated and may be again; which are to be; and
    what the last of them left."""

    evaluated: set[tuple[str, ...]] = set()
    again: set[tuple[str, ...]] = set()
    left: bytes = b""


class Attributes(msgspec.Struct):
    """The write to admit. `subresource` is empty for the object itself."""

    operation: Operation
    resource: Resource
    subresource: str
    namespace: str
    name: str
    user: User
    target: str
    """What is written: `pods`, `pods/eviction`, `leases.coordination.k8s.io`."""
    sent: Sent
    dry_run: bool = False
    path_name: str = ""
    """The name in the request's path, which that of a new object is not."""
    unnamed: str = ""
    """What a refusal tells in place of an empty name: what a name is to be made of, or `Unknown`."""
    verb: str = ""
    """That of the request: a patch is an UPDATE, too."""
    changed: bool = False
    """Whether a plugin asks for the others to look again, since it changed the object after them."""
    again: bool = False
    """Whether they are looking again."""
    policies: Reinvocation | None = None
    """What the mutating policies keep from the first time to the second."""
    asked: Any = None
    """What the webhooks keep from the first time to the second."""
    _read: dict[tuple[int, int], Any] | None = None
    _encoded: dict[tuple[int, int], bytes] | None = None

    def forbidden(self, why: str) -> StatusError:
        name = self.name or self.unnamed
        return forbidden(self.resource.plural, name, why, self.resource.group)

    def data(self, obj: Any, form: Form) -> Any:
        """`obj`, which is `new` or `old`, in a form as plain data, made once. It must not be changed. None if
        there is no object."""
        known = self._read = {} if self._read is None else self._read
        key = id(obj), id(form)
        if key not in known:
            encoded = self.encoded(obj, form)
            known[key] = None if encoded is None else json.decode_data(encoded)
        return known[key]

    def encoded(self, obj: Any, form: Form) -> bytes | None:
        """As `data`, as JSON."""
        if obj is None:
            return None
        known = self._encoded = {} if self._encoded is None else self._encoded
        key = id(obj), id(form)
        if key not in known:
            known[key] = form.encoded(obj)
        return known[key]

    def write(self, new: Any, form: Form, data: bytes) -> bool:
        """Make `new`, in place, what JSON in a form says; what others know of it is made again. False if that
        changes nothing. Raises StatusError for JSON that is no such object."""
        before = form.encoded(new)
        form.write(new, data)
        self.forget()
        return form.encoded(new) != before

    def forget(self) -> None:
        """To be called by who changes `new` after it was shown as data."""
        self._read = self._encoded = None


class Plugin(Protocol):
    """One plugin. `new` is None for a deletion, `old` for a creation. May change `new`; raises StatusError to
    refuse. Who is asked about a form of the object reads `attributes.data` and writes `attributes.write`."""

    handles: ClassVar[Handles]
    """The operations that it is asked about, for each target; ANY is every target that is not named."""

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None: ...


class Outside(Protocol):
    """A plugin that asks somebody outside of the server."""

    def waits(self, forms: Sequence[Form], subresource: str, operation: Operation) -> bool:
        """Whether it may ask about such a write."""
        ...


class Objects(Protocol):
    """The stored objects, for plugins. They must not be changed in place."""

    def find(self, type: type[T], namespace: str, name: str) -> T | None: ...

    def all(self, type: type[T], namespace: str = "") -> Iterable[T]:
        """The objects of one namespace, or of all."""
        ...

    def changes(self, type: type[KubeObject]) -> int:
        """A number that moves on with every change of an object of the type: what was compiled of all of them
        holds while it is the same."""
        ...

    async def create(self, obj: KubeObject) -> None:
        """Store an object that the server itself makes, without admission. Raises StatusError."""
        ...

    async def change(
        self, type: type[T], namespace: str, name: str, change: Callable[[T], None], *, dry_run: bool
    ) -> None:
        """Store the object as `change` alters a copy of it. Raises StatusError, also one that `change`
        raises."""
        ...
