"""The audit log: one line of JSON for every request that changed something or was refused.

An event is what audit.k8s.io/v1 calls level Metadata at stage ResponseComplete: who, what, when and the
answer's code, never a body. Where the lines go is the caller's choice.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

from podling.apiserver.context import RequestContext
from podling.model.time import micro_time

READING = frozenset({"get", "list", "watch", "head", "options"})

_encode = msgspec.json.Encoder().encode


class AuditLog:
    """An observer of the pipeline; `write` takes one line with its newline and must not block."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write

    def completed(self, context: RequestContext, code: int) -> None:
        if code < 400 and context.info.verb in READING and not context.info.subresource:
            return
        self._write(_encode(audit_event(context, code)) + b"\n")


_OURS = str(uuid.uuid4())[:-12]
_count = count()


def new_audit_id() -> str:
    """A UUID like no other: random for this process, counted within it, since every request needs one."""
    return f"{_OURS}{next(_count):012x}"


def audit_event(context: RequestContext, code: int) -> dict[str, Any]:
    request, info = context.request, context.info
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": context.audit_id,
        "stage": "ResponseComplete",
        "requestURI": f"{request.path}?{request.query}" if request.query else request.path,
        "verb": info.verb,
        "user": {"username": context.user.name, "groups": list(context.user.groups)},
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": micro_time(context.now),
    }
    if "User-Agent" in request.headers:
        event["userAgent"] = request.headers["User-Agent"]
    if info.is_resource_request:
        event["objectRef"] = _object_reference(context)
    return event


def _object_reference(context: RequestContext) -> dict[str, str]:
    info = context.info
    reference = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "apiGroup": info.api_group,
        "apiVersion": info.api_version,
        "subresource": info.subresource,
    }
    return {key: value for key, value in reference.items() if value}
