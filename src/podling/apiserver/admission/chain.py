"""What an admission plugin is, what it is told about a write, and the chain that asks all plugins
in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from podling.apiserver.request.request import User
from podling.model.errors import StatusError, forbidden
from podling.model.scheme import Resource
from podling.model.types.meta import KubeObject

T = TypeVar("T", bound=KubeObject)

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class Attributes(msgspec.Struct, frozen=True):
    """The write to admit. `subresource` is empty for the object itself."""

    operation: Operation
    resource: Resource
    subresource: str
    namespace: str
    name: str
    user: User
    dry_run: bool = False

    def is_for(self, plural: str, *operations: Operation) -> bool:
        """Whether it is one of `operations` on the core/v1 resource itself, not on a subresource."""
        resource = self.resource
        return (resource.group, resource.plural, self.subresource) == ("", plural, "") and (
            self.operation in operations
        )

    def is_about(self, group: str, plural: str) -> bool:
        """Whether it is about a resource itself, not a subresource."""
        return (self.resource.group, self.resource.plural, self.subresource) == (group, plural, "")

    def forbidden(self, why: str) -> StatusError:
        return forbidden(self.resource.plural, self.name, why, self.resource.group)


class Plugin(Protocol):
    """One plugin. `new` is None for a deletion, `old` for a creation. May change `new`; raises StatusError to
    refuse."""

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


class Chain:
    """All plugins: those that may change an object, asked before it is validated, and then those that only
    refuse or that charge limited resources, so that an invalid object is never charged."""

    def __init__(self, changing: Sequence[Plugin], taking: Sequence[Plugin] = ()) -> None:
        self._changing = changing
        self._taking = taking

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        for plugin in self._changing:
            await plugin.admit(attributes, new, old)

    async def validate(self, attributes: Attributes, new: Any, old: Any) -> None:
        for plugin in self._taking:
            await plugin.admit(attributes, new, old)
