"""The typed client: a verb and a type in, objects out, over any transport.

Paths follow from the type's resource in `podling.model.scheme`; a server's Status is raised as StatusError.
`listed` and `watched` read answers for those who know their paths themselves.
`served` asks discovery for all resources of a server, also those that podling has no type for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from podling.client.transport import JSON, Transport
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.types.meta import DeleteOptions, KubeObject, ListMeta, PartialObjectMetadata, Preconditions

T = TypeVar("T", bound=KubeObject)

MERGE_PATCH = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
KNOWN = {"fieldValidation": "Ignore"}
"""The query `fieldValidation=Ignore`: bodies are made from types, so the server need not look for unknown or
duplicate fields.
"""


class Listing(NamedTuple, Generic[T]):
    items: list[T]
    resource_version: str


class WatchEvent(NamedTuple, Generic[T]):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: T


class RawListing(msgspec.Struct):
    """A list whose objects are still bytes."""

    items: list[msgspec.Raw] | None = None
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


_events = msgspec.json.Decoder(_RawEvent)
listed = msgspec.json.Decoder(RawListing).decode


class Client:
    """Verbs of the Kubernetes API for every type the scheme knows."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, type_: type[T], name: str, namespace: str = "") -> T:
        return json.decode(await self._call("GET", path_of(type_, namespace, name)), type_)

    async def list(
        self, type_: type[T], namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> Listing[T]:
        # Not before it is needed: asyncio comes with it.
        from podling.process.waits import Turn

        query = _selectors(label_selector, field_selector)
        found = listed(await self._call("GET", path_of(type_, namespace), query))
        items: list[T] = []
        turn = Turn()
        for item in found.items or ():
            items.append(json.decode(item, type_))
            await turn.share()
        return Listing(items, found.metadata.resource_version)

    async def watch(
        self,
        type_: type[T],
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncGenerator[Sequence[WatchEvent[T]], None]:
        """Changes after `resource_version`, in groups as they arrived, bookmarks included.

        Ends when the server ends the watch. Raises StatusError 410 when the version is too old.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            **_selectors(label_selector, field_selector),
        }
        stream = self._transport.stream(path_of(type_, namespace), query)
        async with aclosing(watched(stream, type_)) as groups:
            async for events in groups:
                yield events

    async def create(self, obj: T, *, manager: str = "") -> T:
        """`manager`: who is recorded to manage its fields, if not this program."""
        path = path_of(type(obj), obj.metadata.namespace)
        query = {**KNOWN, "fieldManager": manager} if manager else KNOWN
        return json.decode(await self._call("POST", path, query, json.encode(obj)), type(obj))

    async def create_subresource(
        self, owner: type[KubeObject], name: str, subresource: str, body: KubeObject
    ) -> None:
        """POST to a subresource such as `binding` or `eviction`, in the namespace of `body`."""
        path = path_of(owner, body.metadata.namespace, name, subresource)
        await self._call("POST", path, KNOWN, json.encode(body))

    async def ask(self, owner: type[KubeObject], name: str, subresource: str, question: T) -> T:
        """POST to a subresource that answers with the object sent, its status filled in, such as `token`."""
        path = path_of(owner, question.metadata.namespace, name, subresource)
        return json.decode(await self._call("POST", path, KNOWN, json.encode(question)), type(question))

    async def update(self, obj: T, *, subresource: str = "") -> T:
        path = path_of(type(obj), obj.metadata.namespace, obj.metadata.name, subresource)
        return json.decode(await self._call("PUT", path, KNOWN, json.encode(obj)), type(obj))

    async def patch(
        self,
        type_: type[T],
        name: str,
        namespace: str,
        body: Any,
        *,
        subresource: str = "",
        patch_type: str = MERGE_PATCH,
    ) -> T:
        path = path_of(type_, namespace, name, subresource)
        answer = await self._call("PATCH", path, KNOWN, msgspec.json.encode(body), patch_type)
        return json.decode(answer, type_)

    async def apply_status(self, type_: type[T], name: str, manager: str, status: Any) -> T:
        """Apply the status of an object outside of namespaces, taking over fields of others."""
        return await self.apply(type_, name, manager, {"status": status}, subresource="status")

    async def apply(
        self, type_: type[T], name: str, manager: str, fields: Any, *, subresource: str = ""
    ) -> T:
        """Apply fields of an object outside of namespaces, taking over those of others."""
        body = {
            "apiVersion": type_.API_VERSION,
            "kind": type_.KIND,
            "metadata": {"name": name},
            **fields,
        }
        query = {**KNOWN, "fieldManager": manager, "force": "true"}
        path = path_of(type_, "", name, subresource)
        return json.decode(await self._call("PATCH", path, query, msgspec.json.encode(body), APPLY), type_)

    async def delete(
        self,
        type_: type[KubeObject],
        name: str,
        namespace: str = "",
        *,
        grace_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
    ) -> None:
        """With `uid` or `resource_version` as preconditions: StatusError 409 when the object does not have
        them."""
        same = Preconditions(uid=uid or None, resource_version=resource_version or None)
        options = DeleteOptions(
            grace_period_seconds=grace_seconds,
            preconditions=same if uid or resource_version else None,
            propagation_policy=propagation or None,
        )
        await self._call("DELETE", path_of(type_, namespace, name), body=json.encode(options))

    async def list_metadata(self, path: str) -> Sequence[PartialObjectMetadata]:
        """The metadata of all objects of a collection, also of a type podling does not have."""
        found = listed(await self._call("GET", path))
        return [json.decode(item, PartialObjectMetadata) for item in found.items or ()]

    async def delete_path(self, path: str) -> None:
        """DELETE any object or collection."""
        await self._call("DELETE", path)

    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """GET any path, such as `/readyz`."""
        return await self._call("GET", path, query)

    async def put_path(self, path: str, obj: KubeObject) -> None:
        """PUT an object to any path, such as the scale of a resource that podling has no type for."""
        await self._call("PUT", path, KNOWN, json.encode(obj))

    async def close(self) -> None:
        await self._transport.close()

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
    ) -> bytes:
        """The body of the answer. Raises StatusError, or OSError when the server cannot be reached."""
        code, _, content = await self._transport.request(method, path, query or {}, body, content_type)
        if code >= 400:
            raise StatusError.from_json(code, content)
        return content


def path_of(type_: type[KubeObject], namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The API path of a collection, an object, or a subresource."""
    # Not before it is needed: commands name their few paths and do without the table of all types.
    from podling.model.scheme import resource_of

    resource = resource_of(type_)
    parts = [f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"]
    if resource.namespaced and namespace:
        parts.append(f"namespaces/{namespace}")
    parts.append(resource.plural)
    parts.extend(part for part in (name, subresource) if part)
    return "/".join(parts)


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in given.items() if value}


async def watched(
    stream: AsyncGenerator[bytes, None], type_: type[T]
) -> AsyncGenerator[Sequence[WatchEvent[T]], None]:
    """The events of a watch's answer, in groups as they arrived. Raises StatusError."""
    rest = b""
    async with aclosing(stream):
        async for piece in stream:
            # An incomplete line waits for the next piece.
            *lines, rest = (rest + piece if rest else piece).split(b"\n")
            if lines:
                yield [_event(line, type_) for line in lines]


def _event(line: bytes, type_: type[T]) -> WatchEvent[T]:
    event = _events.decode(line)
    if event.type == "ERROR":
        raise StatusError.from_json(500, bytes(event.object))
    return WatchEvent(event.type, json.decode(event.object, type_))


class Served(NamedTuple):
    """A resource of a group version. `root` is the path of the group version."""

    root: str
    group: str
    plural: str
    namespaced: bool
    verbs: frozenset[str]

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "") -> str:
        """The path of its objects in a namespace, or in all."""
        return (
            f"{self.root}/namespaces/{namespace}/{self.plural}" if namespace else f"{self.root}/{self.plural}"
        )


class _Resource(msgspec.Struct):
    name: str
    namespaced: bool = False
    verbs: list[str] = []


class _Resources(msgspec.Struct):
    resources: list[_Resource] = []


class _Version(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, rename="camel"):
    name: str
    preferred_version: _Version


class _Groups(msgspec.Struct):
    groups: list[_Group] = []


async def served(client: Client) -> list[Served]:
    """All resources of the server, each in the version its group prefers, without subresources."""
    groups = msgspec.json.decode(await client.raw("/apis"), type=_Groups).groups
    roots = [("", "/api/v1"), *((one.name, f"/apis/{one.preferred_version.group_version}") for one in groups)]
    return [
        Served(root, group, resource.name, resource.namespaced, frozenset(resource.verbs))
        for group, root in roots
        for resource in msgspec.json.decode(await client.raw(root), type=_Resources).resources
        if "/" not in resource.name
    ]
