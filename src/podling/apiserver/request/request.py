"""What arrives: a request without its socket, who sent it, and what its path and verb ask for.

`request_info` reads a path as Kubernetes' RequestInfoFactory does: decoded first and divided then, so that
`a%2Fb` is two parts. Authorization, routing, audit, metrics and proxies look at its answer and never at the
path again. Those with a name ask for the same paths again and again, so they are remembered; of what a
stranger asks nothing is, and only its beginning is read. Pure: the server's HTTP library appears in `http.py`
and `arrival.py` only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qs, unquote_to_bytes

import msgspec

from podling.model.errors import bad_request
from podling.model.remembered import remembered

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
LONGEST_OF_A_STRANGER = 1024
"""What is read of the path, and of the query, of a request that nobody vouches for: no path that is open to
everyone comes near it."""
MOST_PARAMETERS = 10_000
"""In one query."""


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

    `read` gives the body of a request from a socket, which is left there until somebody wants it; it raises
    StatusError. Requests from inside the process bring theirs as `body`.
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
    read: Callable[[], Awaitable[bytes]] | None = None
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


def parse_query(query: str) -> Query:
    """Raises StatusError 400 for more parameters than anybody means."""
    try:
        return parse_qs(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS) if query else {}
    except ValueError as error:
        raise bad_request(f"more than {MOST_PARAMETERS} parameters in a query") from error


def flag(query: Query, name: str) -> bool:
    return is_true(query[name][0]) if name in query else False


def is_true(value: str) -> bool:
    """A boolean parameter: being there means true, unless it says otherwise."""
    return value.lower() not in ("0", "false")


def decoded(path: str) -> bytes:
    """As Go has a URL's path: every escape undone."""
    return unquote_to_bytes(path)


def request_info(method: str, path: str, query: Query) -> RequestInfo:
    """Raises StatusError 400 for a path that names a verb without a resource."""
    return path_info(path, method, flag(query, "watch"))


def path_info(path: str, method: str, watch: bool) -> RequestInfo:
    """`request_info` of a query that asks to `watch` or does not."""
    path = decoded(path).decode(errors="replace")
    parts = path.strip("/").split("/")
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
    # Kept without a subresource, too: `pods/a//log` is no pod.
    below = tuple(rest[3:])
    if not name:
        verb = _collection_verb(verb, watch)
    return RequestInfo(verb, path, True, group, version, namespace, resource, subresource, name, below)


recall_query = remembered(4096)(parse_query)
recall_path = remembered(4096)(path_info)


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
