"""An event of the audit log, audit.k8s.io/v1: what is told of a request, as data.

Everything that a client chose is truncated at level Metadata, so that no client can fill the log with one
line; bodies are recorded whole, and only where the policy asks for them.
"""

from __future__ import annotations

from datetime import datetime
from ipaddress import ip_address
from typing import Any

import msgspec

from podling.apiserver.authz.authorizers import asked
from podling.apiserver.observe.audit_policy import LEVEL_NAMES, RECEIVED, VERSION
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.recorded import Recorded
from podling.apiserver.request.request import Request, RequestInfo, User
from podling.model.time import micro_time

LONGEST = 1024
"""Characters kept of a string that a client sends, such as `User-Agent`, as in Kubernetes."""
LONGEST_URI = 8192
DECISION, REASON = "authorization.k8s.io/decision", "authorization.k8s.io/reason"


def audit_event(
    context: RequestContext, recorded: Recorded, stage: str, code: int, now: datetime
) -> dict[str, Any]:
    """`code` is 0 as long as there is no answer."""
    request, info = context.request, context.info
    uri = shortened(request.path, LONGEST_URI)
    if request.query:
        uri += f"?{shortened(request.query, LONGEST_URI)}"
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": VERSION,
        "level": LEVEL_NAMES[recorded.amount.level],
        "auditID": context.audit_id,
        "stage": stage,
        "requestURI": uri,
        "verb": shortened(info.verb),
        **_who(context, recorded),
    }
    if came_from := source_ips(request):
        event["sourceIPs"] = came_from
    if "User-Agent" in request.headers:
        event["userAgent"] = shortened(request.headers["User-Agent"])
    if info.is_resource_request:
        event["objectRef"] = _reference(named(context), recorded)
    if stage != RECEIVED:
        event["responseStatus"] = {"metadata": {}, **recorded.status, "code": code}
        if recorded.sent:
            event["requestObject"] = msgspec.Raw(recorded.sent)
        if recorded.answered:
            event["responseObject"] = msgspec.Raw(recorded.answered)
    event["requestReceivedTimestamp"] = micro_time(context.now)
    event["stageTimestamp"] = micro_time(now)
    if stage != RECEIVED and (annotations := _annotations(context)):
        event["annotations"] = annotations
    return event


def named(context: RequestContext) -> RequestInfo:
    """What is asked for; its name may be in a field selector."""
    name = asked(context.info, context.query).name
    return context.info if name == context.info.name else context.info._replace(name=name)


def _annotations(context: RequestContext) -> dict[str, str]:
    if context.allowed_by is None:
        return context.annotations
    return {DECISION: "allow", REASON: context.allowed_by, **context.annotations}


def _reference(info: RequestInfo, recorded: Recorded) -> dict[str, str]:
    """`objectRef`: what the path says, and what an object that was sent says beyond it."""
    named = recorded.identity
    reference = {
        "resource": info.resource,
        "namespace": info.namespace or named.namespace,
        "name": info.name or named.name,
        "uid": named.uid,
        "apiGroup": info.api_group,
        "apiVersion": info.api_version,
        "resourceVersion": named.resource_version,
        "subresource": info.subresource,
    }
    return {key: shortened(value) for key, value in reference.items() if value}


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


def _who(context: RequestContext, recorded: Recorded) -> dict[str, Any]:
    """`user` and, for impersonation, `impersonatedUser`."""
    acting = context.impersonation
    if not recorded.is_known:
        return {"user": {}}
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
