"""A request without its socket, the user who sent it, and what its path and verb ask for.

`request_info` reads a path as Kubernetes' RequestInfoFactory does. Authorization, routing, audit, metrics and
proxies use its result and do not read the path again. Everything here is pure and free of the HTTP library,
which only `http/`, `connect/` and upgrades use.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import NamedTuple
from urllib.parse import parse_qs, unquote_to_bytes

import msgspec

from podling.model.errors import bad_request
from podling.model.integers import parse_int64
from podling.model.remembered import LONGEST, remembered
from podling.process.tls import ALWAYS, Lifetime

Query = Mapping[str, Sequence[str]]
_UNREADABLE = re.compile(r"%(?![0-9A-Fa-f]{2})|;")

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
BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a body that is read whole, as in kube-apiserver."""
LONGEST_OF_A_STRANGER = 1024
"""Characters read of the path, and of the query, of an anonymous request. No path that is open to everyone is
as long."""
PARSED_AS_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
"""What Go's strconv.ParseBool takes for true."""
MOST_PARAMETERS = 10_000
"""Parameters in one query."""
LONGEST_AUDIT_ID = 64
"""Characters kept of an `Audit-Id` that the client sends."""
MOST_REPEATED = 4096
"""Repeated requests that are remembered; so many, too, by each layer that keeps something about them."""

# An audit ID is a UUID: a random prefix for this process and a counter, since every request needs one.
_OURS = str(uuid.uuid4())[:-12]
_count = count()

Subject = tuple[tuple[tuple[str, str], ...], ...]
"""The subject of a verified certificate as `ssl.SSLSocket.getpeercert` gives it: tuples of (type, value)."""


class User(NamedTuple):
    """The user a request is from, as authentication found it (`userInfo` of authentication.k8s.io)."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def length(self) -> int:
        """Characters."""
        extra = sum(len(key) + sum(map(len, values)) for key, values in self.extra)
        return len(self.name) + sum(map(len, self.groups)) + len(self.uid) + extra


class Certificate(msgspec.Struct, frozen=True, eq=False):
    """A client's, which TLS has verified to be for clients and signed through `issuers`; all of these are
    valid during `lifetime`, which may be over.

    `encoded` and `issuers` are DER; those begin with who signed it, and are empty where the client resumed
    its session. `fingerprint` is SHA-256 in hexadecimal digits. Compared by identity."""

    subject: Subject
    encoded: bytes = b""
    issuers: tuple[bytes, ...] = ()
    fingerprint: str = ""
    lifetime: Lifetime = ALWAYS


class Request(msgspec.Struct):
    """One request, from a socket or from a client in the same process."""

    method: str
    path: str
    """Still percent-encoded."""
    query: str = ""
    headers: Mapping[str, str] = {}
    """Looked up by canonical names, such as `Content-Type`."""
    body: bytes = b""
    """Empty until `read` was called, if the request has a `read`."""
    user: User | None = None
    """Set only by clients in the same process, who need no authentication."""
    certificate: Certificate | None = None
    remote: str = ""
    """The IP address of the client; empty for a client in the same process."""
    read: Callable[[], Awaitable[bytes]] | None = None
    """Reads the body from the socket, where it stays until the request is authorized. Raises StatusError."""
    pieces: Callable[[], AsyncGenerator[bytes, None]] | None = None
    """Reads it in place of `read`, for a proxy, as it comes and however long it is. Raises Disconnected."""


class Selecting(NamedTuple):
    """One condition of a selector; `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        return self.operator == "In" and len(self.values) == 1


class RequestInfo(NamedTuple):
    """Kubernetes' RequestInfo. A non-resource request has only `verb` (the method in lower case)
    and `path`."""

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
    """The parts of the path that follow the subresource."""
    fields: Sequence[Selecting] = ()
    labels: Sequence[Selecting] = ()
    """What the selectors of a list or watch ask for, to be authorized."""

    @property
    def selected(self) -> Sequence[tuple[str, str]]:
        """The fields that must be equal to something, with what."""
        return tuple((one.key, one.values[0]) for one in self.fields if one.exact)


def parse_query(query: str) -> Query:
    """What Go cannot read, such as `%zz`, or with a semicolon, it leaves out. Raises StatusError 400 for more
    than MOST_PARAMETERS."""
    if _UNREADABLE.search(query):
        query = "&".join(one for one in query.split("&") if not _UNREADABLE.search(one))
    try:
        return parse_qs(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS) if query else {}
    except ValueError as error:
        raise bad_request(f"more than {MOST_PARAMETERS} parameters in a query") from error


def flag(query: Query, name: str) -> bool:
    return is_true(query[name][0]) if name in query else False


def is_true(value: str) -> bool:
    """A boolean query parameter, as Kubernetes reads it: true unless its value is `0` or `false`."""
    return value.lower() not in ("0", "false")


def number(text: str) -> int:
    """A whole number of 64 bits in a query. Raises StatusError 400."""
    try:
        return parse_int64(text)
    except ValueError as error:
        raise bad_request(str(error)) from error


def audit_id(headers: Mapping[str, str]) -> str:
    """What a request is called in the audit log and in its answer: as the client asks, or as no other is."""
    return headers.get("Audit-Id", "")[:LONGEST_AUDIT_ID] or f"{_OURS}{next(_count):012x}"


def wants_web_socket(headers: Mapping[str, str]) -> bool:
    """Whether a client asks for its answer over a WebSocket."""
    return (
        headers.get("Upgrade", "").lower() == "websocket"
        and "upgrade" in headers.get("Connection", "").lower()
    )


def decoded(path: str) -> bytes:
    """With every percent escape decoded, like Go's `URL.Path`."""
    return unquote_to_bytes(path)


def request_info(method: str, path: str, query: Query) -> RequestInfo:
    """What a request asks for. Raises StatusError 400 for a path such as `/api/v1/watch`, without a
    resource."""
    return path_info(path, method, flag(query, "watch"))


def path_info(path: str, method: str, watch: bool) -> RequestInfo:
    """`request_info` with the `watch` parameter of the query taken out, so that results can be cached."""
    # Decoded before it is split, as in Kubernetes: `a%2Fb` is two parts.
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
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        # What follows the name is a resource within the namespace, or a subresource of the namespace itself.
        if len(rest) > 2 and rest[2] not in NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    resource, name = rest[0], rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 and verb != "proxy" else ""
    # Kept even if the subresource is empty: `pods/a//log` must not be taken for the pod.
    below = tuple(rest[3:])
    if not name and verb == "get":
        verb = "watch" if watch else "list"
    elif not name and verb == "delete":
        verb = "deletecollection"
    return RequestInfo(verb, path, True, group, version, namespace, resource, subresource, name, below)


# For authenticated users only: they repeat the same queries, while strangers could fill the cache.
recall_query = remembered(4096)(parse_query)


class RepeatedRequest(msgspec.Struct, frozen=True, eq=False):
    """Who asks for what: one object for all requests of a user with the same method and path. Two are equal
    only if they are the same, so a layer that keeps what it has found about one hashes no path again."""

    user: User
    info: RequestInfo


class RepeatedRequests:
    """Those of authenticated users: strangers could fill the memory."""

    def __init__(self) -> None:
        self._known: dict[tuple[User, str, str, bool], RepeatedRequest] = {}

    def of(self, user: User, request: Request, *, watch: bool) -> RepeatedRequest | None:
        """None if the request is too long to be remembered. Raises StatusError 400 as `request_info` does."""
        key = user, request.path, request.method, watch
        found = self._known.get(key)
        if found is None and len(request.path) + user.length <= LONGEST:
            found = RepeatedRequest(user, path_info(request.path, request.method, watch))
            if len(self._known) >= MOST_REPEATED:
                self._known.clear()
            self._known[key] = found
        return found
