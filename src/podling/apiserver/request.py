"""What arrives: a request without its socket, who sent it, and what its path and verb ask for.

`request_info` reads a path as Kubernetes' RequestInfoFactory does; authorization, routing, audit and metrics
look at its answer and never at the path again. The same paths are asked for again and again, so the answers
are remembered. Pure: the server's HTTP library appears in `http.py` and `arrival.py` only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

import msgspec

from podling.model.errors import bad_request

Query = Mapping[str, Sequence[str]]

RESOURCE_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
VERBS_IN_PATH = frozenset({"proxy", "watch"})
NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


class User(NamedTuple):
    """Who a request is from, as authentication found."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


Subject = tuple[tuple[tuple[str, str], ...], ...]
"""The subject of a verified certificate as `ssl.SSLSocket.getpeercert` gives it: tuples of (type, value)."""


class Request(msgspec.Struct):
    """One request. `path` is still percent-encoded; `headers` is looked up by names such as `Content-Type`.

    `user` is set only by callers inside the process, who need no authentication; `certificate` is the subject
    of the TLS client certificate when one was presented and verified.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    body: bytes = b""
    user: User | None = None
    certificate: Subject | None = None
    remote: str = ""
    """The address it came from; none from inside the process."""


class RequestInfo(NamedTuple):
    """What is asked for. A non-resource request has only `verb` (the method in lower case) and `path`."""

    verb: str
    path: str
    is_resource_request: bool = False
    api_group: str = ""
    api_version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    rest: tuple[str, ...] = ()
    """What follows the subresource."""


@lru_cache(maxsize=4096)
def parse_query(query: str) -> Query:
    """Clients ask in the same words again and again."""
    return parse_qs(query, keep_blank_values=True) if query else {}


def flag(query: Query, name: str) -> bool:
    return is_true(query[name][0]) if name in query else False


def is_true(value: str) -> bool:
    """A boolean parameter: being there means true, unless it says otherwise."""
    return value.lower() not in ("0", "false")


def request_info(method: str, path: str, query: Query) -> RequestInfo:
    """Raises StatusError 400 for a path that names a verb without a resource."""
    return _request_info(method, path, flag(query, "watch"))


@lru_cache(maxsize=4096)
def _request_info(method: str, path: str, watch: bool) -> RequestInfo:
    parts = [unquote(part) for part in path.split("/") if part] if "%" in path else path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return RequestInfo(method.lower(), path)
    if parts[0] == "apis":
        if len(parts) < 4:
            return RequestInfo(method.lower(), path)
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        group, version, rest = "", parts[1], parts[2:]
    verb = RESOURCE_VERBS.get(method, "")
    if rest[0] in VERBS_IN_PATH:
        if len(rest) < 2:
            raise bad_request(f"unable to determine kind and namespace from url, {path}")
        verb, rest = rest[0], rest[1:]
    namespace, rest = _namespace(rest)
    resource, name = rest[0], rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 and verb != "proxy" else ""
    below = tuple(rest[3:]) if subresource else ()
    if not name:
        verb = _collection_verb(verb, watch)
    return RequestInfo(verb, path, True, group, version, namespace, resource, subresource, name, below)


def _namespace(parts: list[str]) -> tuple[str, list[str]]:
    """The namespace, and those parts that name a resource: a namespace itself, or something within it."""
    if parts[0] != "namespaces" or len(parts) == 1:
        return "", parts
    if len(parts) > 2 and parts[2] not in NAMESPACE_SUBRESOURCES:
        return parts[1], parts[2:]
    return parts[1], parts


def _collection_verb(verb: str, watch: bool) -> str:
    if verb == "get":
        return "watch" if watch else "list"
    return "deletecollection" if verb == "delete" else verb
