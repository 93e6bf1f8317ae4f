"""The promise of admission: who asks for which change, and plugins that may alter or refuse it, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from podling.apiserver.request import User
from podling.model.errors import StatusError, forbidden
from podling.model.meta import KubeObject
from podling.model.scheme import Resource

T = TypeVar("T", bound=KubeObject)

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked for. `subresource` is empty for the object itself."""

    operation: Operation
    resource: Resource
    subresource: str
    namespace: str
    name: str
    user: User
    dry_run: bool = False

    def is_for(self, plural: str, *operations: Operation) -> bool:
        """Whether it is one of `operations` on a core resource itself, not on a subresource."""
        resource = self.resource
        return (resource.group, resource.plural, self.subresource) == ("", plural, "") and (
            self.operation in operations
        )

    def forbidden(self, why: str) -> StatusError:
        return forbidden(self.resource.plural, self.name, why, self.resource.group)


class Plugin(Protocol):
    """`new` is None for a deletion, `old` for a creation. May change `new`; raises StatusError to refuse."""

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None: ...


class Find(Protocol):
    """Looks an object up as it stands."""

    def __call__(self, type: type[T], namespace: str, name: str) -> T | None: ...


class Chain:
    """All plugins, asked in order."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._plugins = plugins

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        for plugin in self._plugins:
            await plugin.admit(attributes, new, old)
