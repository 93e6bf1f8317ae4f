"""What an admission plugin is, and what it is told about a write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import msgspec

from podling.apiserver.authz.authorizers import Opinion
from podling.apiserver.request.request import RequestInfo, User
from podling.model.errors import StatusError, forbidden
from podling.model.scheme import Resource
from podling.model.types.meta import KubeObject

T = TypeVar("T", bound=KubeObject)

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
Handles = Mapping[str, tuple[Operation, ...]]
May = Callable[[User, RequestInfo], Opinion]
"""Asks the authorizers."""
ANY = "*"


class Attributes(msgspec.Struct, frozen=True):
    """The write to admit. `subresource` is empty for the object itself."""

    operation: Operation
    resource: Resource
    subresource: str
    namespace: str
    name: str
    user: User
    target: str
    """What is written: `pods`, `pods/eviction`, `leases.coordination.k8s.io`."""
    dry_run: bool = False

    def forbidden(self, why: str) -> StatusError:
        return forbidden(self.resource.plural, self.name, why, self.resource.group)


class Plugin(Protocol):
    """One plugin. `new` is None for a deletion, `old` for a creation. May change `new`; raises StatusError to
    refuse."""

    handles: ClassVar[Handles]
    """The operations that it is asked about, for each target; ANY is every target that is not named."""

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None: ...


class Objects(Protocol):
    """The stored objects, for plugins. They must not be changed in place."""

    def find(self, type: type[T], namespace: str, name: str) -> T | None: ...

    def all(self, type: type[T], namespace: str = "") -> Iterable[T]:
        """The objects of one namespace, or of all."""
        ...

    async def change(
        self, type: type[T], namespace: str, name: str, change: Callable[[T], None], *, dry_run: bool
    ) -> None:
        """Store the object as `change` alters a copy of it. Raises StatusError, also one that `change`
        raises."""
        ...
