"""The audit log: one line of JSON for every request that changed something or was refused.

An event is what audit.k8s.io/v1 calls level Metadata at stage ResponseComplete: who, what, when and the
status code, never a body. A long-running request, such as an exec, is logged when it starts. Everything that
a client chose is truncated, so that no client can fill the log with one line.
"""

from __future__ import annotations

from datetime import datetime
from ipaddress import ip_address
from typing import Any, Protocol

import msgspec

from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, User
from podling.model.time import Clock, micro_time

READING = frozenset({"get", "list", "watch", "head", "options"})
SWITCHING, FORBIDDEN = 101, 403
LONGEST = 1024
"""Characters kept of a string that a client sends, such as `User-Agent`, as in Kubernetes."""
LONGEST_URI = 8192

_encode = msgspec.json.Encoder().encode


class Sink(Protocol):
    """Where the lines of the audit log go."""

    @property
    def full(self) -> bool:
        """Whether callers should wait for `room()`; `write` still accepts lines."""
        ...

    async def room(self) -> None:
        """Wait until it is no longer full."""
        ...

    def write(self, line: bytes) -> None:
        """One line with its newline. Must not block."""
        ...

    @property
    def lost(self) -> int:
        """How many lines could not be kept."""
        ...

    @property
    def fault(self) -> str:
        """Why lines are lost now; empty while they are not."""
        ...


class AuditLog:
    """An observer of the pipeline."""

    def __init__(self, sink: Sink, clock: Clock) -> None:
        self.sink = sink
        self._clock = clock
        self.count = 0

    def completed(self, context: RequestContext, code: int) -> None:
        if code < 400 and context.info.verb in READING and not context.info.subresource:
            return
        self.count += 1
        self.sink.write(_encode(audit_event(context, code, self._clock.now())) + b"\n")


def audit_event(context: RequestContext, code: int, now: datetime) -> dict[str, Any]:
    request, info = context.request, context.info
    uri = shortened(request.path, LONGEST_URI)
    if request.query:
        uri += f"?{shortened(request.query, LONGEST_URI)}"
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": context.audit_id,
        "stage": "ResponseStarted" if code == SWITCHING else "ResponseComplete",
        "requestURI": uri,
        "verb": shortened(info.verb),
        **_who(context),
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": micro_time(context.now),
        "stageTimestamp": micro_time(now),
        "annotations": {"authorization.k8s.io/decision": "forbid" if code == FORBIDDEN else "allow"},
    }
    if "User-Agent" in request.headers:
        event["userAgent"] = shortened(request.headers["User-Agent"])
    if came_from := source_ips(request):
        event["sourceIPs"] = came_from
    if info.is_resource_request:
        reference = {
            "resource": info.resource,
            "namespace": info.namespace,
            "name": info.name,
            "apiGroup": info.api_group,
            "apiVersion": info.api_version,
            "subresource": info.subresource,
        }
        event["objectRef"] = {key: shortened(value) for key, value in reference.items() if value}
    return event


def shortened(text: str, most: int = LONGEST) -> str:
    """Truncated, with Kubernetes' mark of a truncated value."""
    return text if len(text) <= most else f"{text[:most]}...TRUNCATED"


def source_ips(request: Request) -> list[str]:
    """`sourceIPs`: the addresses in the request's proxy headers, then the address of the connection, which
    alone is certain. Empty for a client in the same process. If there are too many, the last are kept: each
    proxy appends its own."""
    forwarded = request.headers.get("X-Forwarded-For", "")[-LONGEST:].split(",")
    ips = [ip for ip in map(_address, forwarded) if ip]
    real = _address(request.headers.get("X-Real-Ip", "")[:LONGEST])
    if real and real not in ips:
        ips.append(real)
    if request.remote and request.remote != (ips[-1] if ips else ""):
        ips.append(request.remote)
    return ips


def _address(text: str) -> str:
    if not text:
        return ""
    try:
        return str(ip_address(text.strip()))
    except ValueError:
        return ""


def _who(context: RequestContext) -> dict[str, Any]:
    """`user` and, for impersonation, `impersonatedUser`."""
    acting = context.impersonation
    if acting is None:
        return {"user": _user(context.user)}
    who = {"user": _user(acting.impersonator), "impersonatedUser": _user(acting.user)}
    if acting.constraint:
        who["authenticationMetadata"] = {"impersonationConstraint": acting.constraint}
    return who


def _user(user: User) -> dict[str, Any]:
    info: dict[str, Any] = {"username": user.name, "groups": user.groups}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = dict(user.extra)
    return info
