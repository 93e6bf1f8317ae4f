"""R-EPH-7: changes and refusals are in the audit log, with who and what."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.audit import AuditLog
from podling.apiserver.context import RequestContext
from podling.apiserver.request import Request, User, parse_query, request_info


def context(method: str, target: str) -> RequestContext:
    path, _, query = target.partition("?")
    request = Request(method, path, query, {"User-Agent": "kubectl"})
    info = request_info(method, path, parse_query(query))
    now = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    return RequestContext(request, "id", now, parse_query(query), info, User("eve", ("g",)))


def log(method: str, target: str, code: int) -> list[Any]:
    lines: list[bytes] = []
    AuditLog(lines.append).completed(context(method, target), code)
    return [json.loads(line) for line in lines]


def test_an_event() -> None:
    path = "/api/v1/namespaces/a/pods/b/ephemeralcontainers"
    assert log("PATCH", f"{path}?dryRun=All", 200) == [
        {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": "id",
            "stage": "ResponseComplete",
            "requestURI": f"{path}?dryRun=All",
            "verb": "patch",
            "user": {"username": "eve", "groups": ["g"]},
            "userAgent": "kubectl",
            "objectRef": {
                "resource": "pods",
                "namespace": "a",
                "name": "b",
                "apiVersion": "v1",
                "subresource": "ephemeralcontainers",
            },
            "responseStatus": {"metadata": {}, "code": 200},
            "requestReceivedTimestamp": "2026-01-02T03:04:05.000006Z",
        }
    ]


@pytest.mark.parametrize(
    ("method", "target", "code", "logged"),
    [
        ("GET", "/api/v1/pods", 200, False),
        ("GET", "/api/v1/pods?watch=1", 200, False),
        ("GET", "/healthz", 200, False),
        ("GET", "/api/v1/pods", 403, True),
        ("GET", "/api/v1/namespaces/a/pods/b/exec", 101, True),
        ("POST", "/api/v1/namespaces/a/pods", 201, True),
        ("DELETE", "/api/v1/namespaces/a/pods/b", 404, True),
    ],
)
def test_what_is_worth_a_line(method: str, target: str, code: int, logged: bool) -> None:
    assert bool(log(method, target, code)) is logged
