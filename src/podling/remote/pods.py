"""A cluster's pods, as commands use them. What is sent is JSON that was not made from types, so that no field
of a newer Kubernetes is lost.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from podling.client.client import Client, WatchEvent, listed, watched
from podling.client.transport import JSON
from podling.debug.container import pod_path, segment
from podling.debug.sessions import manager
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from podling.client.https import HttpsTransport
    from podling.model.types.core import Event
    from podling.remote.streams import Command, Wanted

FORBIDDEN, NOT_FOUND = 403, 404
REVIEWS = "authorization.k8s.io/v1"
STRATEGIC = "application/strategic-merge-patch+json"

T = TypeVar("T", bound=KubeObject)


class _Metadata(msgspec.Struct):
    name: str
    labels: dict[str, str] = {}


class _Namespace(msgspec.Struct):
    metadata: _Metadata


class _Allowed(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Allowed


def _as_user(*, dry_run: bool) -> dict[str, str]:
    """The query of a write. Who runs this program is a name that only the pod's `managedFields` get."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return {"fieldManager": manager(user), **({"dryRun": "All"} if dry_run else {})}


def container_patch(container: Mapping[str, Any]) -> dict[str, Any]:
    """What adds an ephemeral container to a pod."""
    return {"spec": {"ephemeralContainers": [container]}}


class Cluster:
    """Errors are StatusError when the server refuses, OSError when it cannot be reached."""

    def __init__(self, transport: HttpsTransport) -> None:
        self._transport = transport
        self._labels: dict[str, Mapping[str, str]] = {}

    def client(self) -> Client:
        """For what is made from types."""
        return Client(self._transport)

    async def get(self, namespace: str, name: str) -> Pod:
        return json.decode(await self._call("GET", pod_path(namespace, name)), Pod)

    async def all(self, namespace: str = "", *, label_selector: str = "") -> list[Pod]:
        """The pods of a namespace, or of all."""
        query = {"labelSelector": label_selector} if label_selector else {}
        return await self.objects(pod_path(namespace), Pod, query)

    async def objects(self, path: str, type_: type[T], query: Mapping[str, str] | None = None) -> list[T]:
        """Those of a collection."""
        found = listed(await self._call("GET", path, query)).items or ()
        return [json.decode(one, type_) for one in found]

    async def may(self, verb: str, resource: str, subresource: str, namespace: str) -> bool:
        """Whether this user may do that, as far as the server's authorizers know."""
        asked = {"verb": verb, "resource": resource, "subresource": subresource, "namespace": namespace}
        body = {
            "apiVersion": REVIEWS,
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        said = await self._call("POST", f"/apis/{REVIEWS}/selfsubjectaccessreviews", {}, body)
        return msgspec.json.decode(said, type=_Review).status.allowed

    async def namespaces(self) -> list[str]:
        return await self._names("/api/v1/namespaces")

    async def services(self, namespace: str) -> list[str]:
        return await self._names(f"/api/v1/namespaces/{segment(namespace)}/services")

    async def _names(self, path: str) -> list[str]:
        found = listed(await self._call("GET", path)).items or ()
        return [msgspec.json.decode(one, type=_Namespace).metadata.name for one in found]

    async def labels_of_namespace(self, name: str) -> Mapping[str, str]:
        """As they were when first asked for; nothing where nobody may look."""
        if name not in self._labels:
            self._labels[name] = await self._labels_now(name)
        return self._labels[name]

    async def _labels_now(self, name: str) -> Mapping[str, str]:
        try:
            said = await self._call("GET", f"/api/v1/namespaces/{segment(name)}")
        except StatusError as error:
            if error.code not in (FORBIDDEN, NOT_FOUND):
                raise
            return {}
        return msgspec.json.decode(said, type=_Namespace).metadata.labels

    async def events(self, pod: Pod) -> list[Event]:
        """What was said about the pod; nothing where nobody may look."""
        from podling.model.types.core import Event

        query = {"fieldSelector": f"involvedObject.uid={pod.metadata.uid}"}
        path = f"/api/v1/namespaces/{pod.metadata.namespace}/events"
        try:
            return await self.objects(path, Event, query)
        except StatusError as error:
            if error.code != FORBIDDEN:
                raise
            return []

    async def document(self, namespace: str, name: str) -> dict[str, Any]:
        """The pod as the server sends it."""
        found: dict[str, Any] = msgspec.json.decode(await self._call("GET", pod_path(namespace, name)))
        return found

    async def create(self, pod: Mapping[str, Any], *, dry_run: bool = False) -> Pod:
        query = _as_user(dry_run=dry_run)
        path = pod_path(pod["metadata"]["namespace"])
        return json.decode(await self._call("POST", path, query, pod), Pod)

    async def create_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        await self._call("POST", "/api/v1/namespaces", {}, body)

    async def delete(self, namespace: str, name: str) -> None:
        await self._call("DELETE", pod_path(namespace, name))

    async def add_container(
        self, namespace: str, name: str, container: Mapping[str, Any], *, dry_run: bool = False
    ) -> Pod:
        """The pod with one more ephemeral container; with `dry_run` as it would be."""
        body = container_patch(container)
        query = _as_user(dry_run=dry_run)
        path = pod_path(namespace, name, "ephemeralcontainers")
        return json.decode(await self._call("PATCH", path, query, body, STRATEGIC), Pod)

    async def changes(
        self,
        path: str,
        type_: type[T],
        resource_version: str,
        field_selector: str,
        *,
        label_selector: str = "",
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """What happens to the objects of the collection after `resource_version`; ends when the server ends
        it."""
        query = {"watch": "true", "resourceVersion": resource_version, "fieldSelector": field_selector}
        if label_selector:
            query["labelSelector"] = label_selector
        async with aclosing(watched(self._transport.stream(path, query), type_)) as groups:
            async for events in groups:
                for event in events:
                    yield event

    async def log(self, namespace: str, name: str, container: str, **options: str) -> bytes:
        """What the container has printed so far."""
        return await self._call("GET", pod_path(namespace, name, "log"), {"container": container, **options})

    def follow(self, namespace: str, name: str, container: str) -> AsyncGenerator[bytes, None]:
        """What the container has printed and prints, until it ends."""
        return self.log_stream(namespace, name, container, follow="true")

    def log_stream(
        self, namespace: str, name: str, container: str, **options: str
    ) -> AsyncGenerator[bytes, None]:
        """The log in pieces. `options` are fields of PodLogOptions."""
        query = {"container": container, **options}
        return self._transport.stream(pod_path(namespace, name, "log"), query)

    async def foresee_attach(self) -> None:
        """Connect for the next attach, which will have to wait."""
        await self._transport.reserve()

    async def attach(
        self, namespace: str, name: str, container: str, wanted: Wanted, extra: Sequence[tuple[str, str]] = ()
    ) -> Command:
        from podling.remote import streams

        path = pod_path(namespace, name, "attach")
        return await streams.attach(self._transport, path, [("container", container), *extra], wanted)

    async def exec(
        self, namespace: str, name: str, container: str, command: Sequence[str], wanted: Wanted
    ) -> Command:
        from podling.remote import streams

        said = [("container", container), *(("command", word) for word in command)]
        return await streams.attach(self._transport, pod_path(namespace, name, "exec"), said, wanted)

    async def close(self) -> None:
        await self._transport.close()

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> bytes:
        sent = None if body is None else msgspec.json.encode(body)
        code, _, content = await self._transport.request(method, path, query or {}, sent, content_type)
        if code >= 400:
            raise StatusError.from_json(code, content)
        return content
