"""Discovery: versions, groups and resources, in both of Kubernetes' forms.

The legacy form is a tree of documents (`/api`, `/api/v1`, `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION`). The
aggregated form (apidiscovery.k8s.io) has everything below `/api` or `/apis` in one document. All follow from
the kinds and are made once; with an ETag, a client need not download again what it already has.
"""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.kinds.kind import Connect, Kind, Posted, Subresource, kept_as
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import JSON, READ, SERVED, check_offered, check_sent, negotiate
from podling.apiserver.request.response import Layout, MethodNotSupported, Response
from podling.model.errors import page_not_found
from podling.model.types.apiregistration import PRIORITIES, APIService

Versions = Mapping[tuple[str, str], Sequence[Kind[Any]]]
"""The kinds of each (group, version)."""

GROUP = "apidiscovery.k8s.io"
KUBERNETES_VERSION = ("1", "36")
FORM = "v2"
AGGREGATED_SHAPES = frozenset({("APIGroupDiscoveryList", GROUP, FORM)})
VERSION = "/version"


def tree(versions: Versions, address: str) -> Iterable[tuple[str, Any]]:
    core = [version for group, version in versions if not group]
    reached = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}] if address else []
    yield "/api", {"kind": "APIVersions", "versions": core, "serverAddressByClientCIDRs": reached}
    groups = groups_of(key for key in versions if key[0])
    for described in groups:
        yield f"/apis/{described['name']}", _alone(described)
    yield "/apis", _listed(groups)
    for (group, version), kinds in versions.items():
        group_version = f"{group}/{version}" if group else version
        yield (
            f"/apis/{group_version}" if group else f"/api/{version}",
            {
                "kind": "APIResourceList",
                **({"apiVersion": "v1"} if group else {}),
                "groupVersion": group_version,
                "resources": [entry for kind in by_name(kinds) for entry in _resources(kind)],
            },
        )


def groups_of(keys: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """`keys`: groups and versions in the order of telling."""
    found = []
    for group, members in groupby(keys, key=lambda key: key[0]):
        listed = [{"groupVersion": f"{group}/{version}", "version": version} for _, version in members]
        found.append({"name": group, "versions": listed, "preferredVersion": listed[0]})
    return found


def _listed(groups: Sequence[Any]) -> dict[str, Any]:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _alone(group: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroup", "apiVersion": "v1", **group}


def by_name(kinds: Sequence[Kind[Any]]) -> list[Kind[Any]]:
    return sorted(kinds, key=lambda kind: kind.resource.plural)


def _resources(kind: Kind[Any]) -> Iterable[dict[str, Any]]:
    resource = kind.resource
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": sorted(kind.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.stored:
        stored = kept_as(kind)
        named = f"{stored.group}/{stored.version}/{stored.kind}".encode()
        entry["storageVersionHash"] = base64.b64encode(hashlib.sha256(named).digest()[:8]).decode()
    yield entry
    for name, subresource in sorted(kind.subresources.items()):
        group, version, answered = answered_kind(kind, subresource)
        foreign = (group, version) != (resource.group, resource.version)
        yield {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **({"group": group, "version": version} if foreign else {}),
            "kind": answered,
            "verbs": sorted(subresource.verbs),
        }


def answered_kind(kind: Kind[Any], subresource: Subresource) -> tuple[str, str, str]:
    """Group, version and kind of the object that a subresource is read or written as."""
    resource = kind.resource
    if isinstance(subresource, Posted):
        group, _, version = subresource.body.API_VERSION.rpartition("/")
        return group, version, subresource.body.KIND
    if isinstance(subresource, Connect):
        return resource.group, resource.version, subresource.options
    return resource.group, resource.version, resource.kind


def items_of(versions: Versions, *, core: bool) -> list[dict[str, Any]]:
    keys = [key for key in versions if core == (not key[0])]
    return [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated(kind) for kind in by_name(versions[group, version])],
                    "freshness": "Current",
                }
                for _, version in members
            ],
        }
        for group, members in groupby(keys, key=lambda key: key[0])
    ]


def _whole(items: Sequence[Any]) -> dict[str, Any]:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{GROUP}/{FORM}",
        "metadata": {},
        "items": items,
    }


def _aggregated(kind: Kind[Any]) -> dict[str, Any]:
    resource = kind.resource
    entry: dict[str, Any] = {
        "resource": resource.plural,
        # Kubernetes names group and version only where they are others than those around it.
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": sorted(kind.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if kind.subresources:
        entry["subresources"] = []
    for _, subresource in sorted(kind.subresources.items()):
        group, version, answered = answered_kind(kind, subresource)
        if (group, version) == (resource.group, resource.version):
            group = version = ""
        entry["subresources"].append(
            {
                "subresource": subresource.name,
                "responseKind": {"group": group, "version": version, "kind": answered},
                "verbs": sorted(subresource.verbs),
            }
        )
    return entry


def _place(kind: Kind[Any]) -> tuple[bool, int, str, int, str]:
    """The group that extends the API comes first; the others by what Kubernetes gives them."""
    group, version = kind.resource.group, kind.resource.version
    of_group, of_version = PRIORITIES.get((group, version), (0, 0))
    return group != APIService.API_VERSION.partition("/")[0], -of_group, group, -of_version, version


class Document(NamedTuple):
    """One answer, with its ETag."""

    body: bytes
    etag: str


class Discovery:
    """Serves the discovery paths of `kinds` and `/version`."""

    def __init__(self, kinds: Sequence[Kind[Any]], podling_version: str, address: str = "") -> None:
        """`address`: where clients find the server, as `host:port`; empty if it is not known."""
        ordered = sorted(kinds, key=_place)
        versions = {
            key: list(members)
            for key, members in groupby(
                ordered, key=lambda kind: (kind.resource.group, kind.resource.version)
            )
        }
        self.versions = versions
        self._documents = {path: msgspec.json.encode(data) for path, data in tree(versions, address)}
        # As paths of their versions begin.
        self._groups = ("/api/", *{f"/apis/{group}/" for group, _ in versions if group})
        self._documents[VERSION] = msgspec.json.encode(version_info(podling_version))
        self._own = self._documents
        self._elsewhere: Collection[str] = ()
        self._aggregated = {
            path: _document(_whole(items_of(versions, core=path == "/api"))) for path in ("/api", "/apis")
        }

    @property
    def paths(self) -> Collection[str]:
        return [*self._documents, *self._elsewhere]

    def tell(self, groups: Sequence[Any], items: Sequence[Any], elsewhere: Collection[str]) -> None:
        """Tell of these groups from now on, in either form. `elsewhere`: the paths of their versions that
        other servers have."""
        self._elsewhere = elsewhere
        self._documents = {
            **self._own,
            **{f"/apis/{one['name']}": msgspec.json.encode(_alone(one)) for one in groups},
            "/apis": msgspec.json.encode(_listed(groups)),
        }
        self._aggregated["/apis"] = _document(_whole(items))

    async def serve(self, context: RequestContext) -> Response | None:
        path = context.info.path.rstrip("/")
        document = self._documents.get(path)
        # Who has no router does not forgive a slash too many.
        if document is None or (path == "/apis" and context.info.path.endswith("//")):
            if path.startswith(self._groups):
                raise page_not_found()
            return None
        # /apis and the groups are told of by Kubernetes' aggregator, which has no router.
        is_routed = not path.startswith("/apis") or path.count("/") > 2
        if is_routed and context.request.method != "GET":
            raise MethodNotSupported(("GET",))
        headers = context.request.headers
        accept, sent = headers.get("Accept", ""), headers.get("Content-Type", "")
        if path == VERSION:
            check_sent(sent, (JSON,))
            check_offered(accept, (JSON,))
            return Response(200, document, layout=Layout.INDENTED)
        if is_routed:
            check_sent(sent, READ)
            check_offered(accept, SERVED)
        shapes = AGGREGATED_SHAPES if path in ("/api", "/apis") else frozenset()
        context.wanted = wanted = negotiate(accept, shapes)
        if not wanted.kind:
            return Response(200, document)
        whole = self._aggregated[path]
        content_type = f"{JSON};g={wanted.group};v={wanted.version};as={wanted.kind}"
        answer = {"ETag": whole.etag, "Vary": "Accept"}
        if headers.get("If-None-Match") == whole.etag:
            return Response(304, b"", content_type, answer)
        return Response(200, whole.body, content_type, answer)


def version_info(podling_version: str) -> dict[str, str]:
    major, minor = KUBERNETES_VERSION
    system = platform.machine()
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(system, system)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{major}.{minor}.0+podling-{podling_version}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"linux/{architecture}",
    }


def _document(data: Any) -> Document:
    body = msgspec.json.encode(data)
    return Document(body, f'"{hashlib.sha256(body).hexdigest().upper()}"')
