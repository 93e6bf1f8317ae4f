"""R-EPH-7: changes and refusals are in the audit log, with who and what."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from podling.apiserver.observe.audit import AuditLog
from podling.apiserver.observe.audit_event import source_ips
from podling.apiserver.observe.audit_policy import DEFAULT, Recording
from podling.apiserver.request.context import Impersonation, RequestContext
from podling.apiserver.request.recorded import without_managed_fields
from podling.apiserver.request.request import Request, User, parse_query, request_info


class Lines:
    """A sink that keeps what it is given."""

    name = "test"
    mode = "batch"
    full = False
    lost = 0
    fault = ""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, event: bytes) -> None:
        self.lines.append(event)

    async def room(self) -> None:
        """There always is."""

    async def kept(self) -> bool:
        return True


class StandingClock(NamedTuple):
    time: datetime

    def now(self) -> datetime:
        return self.time


def context(method: str, target: str) -> RequestContext:
    path, _, query = target.partition("?")
    request = Request(method, path, query, {"User-Agent": "kubectl"})
    info = request_info(method, path, parse_query(query))
    now = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    return RequestContext(request, "id", now, parse_query(query), info, User("eve", ("g",)))


def log(method: str, target: str, code: int) -> list[Any]:
    return [json.loads(line) for line in told(context(method, target), code)]


def told(at: RequestContext, code: int) -> list[bytes]:
    """What podling's own policy records of a request that is answered with this code."""
    sink = Lines()
    log = AuditLog(Recording(DEFAULT, failures=True), [sink], StandingClock(at.now))
    log.received(at, is_known=True)
    log.completed(at, code)
    return sink.lines


def test_an_event() -> None:
    path = "/api/v1/namespaces/a/pods/b/ephemeralcontainers"
    assert log("PATCH", f"{path}?dryRun=All", 200) == [
        {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Request",
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
            "stageTimestamp": "2026-01-02T03:04:05.000006Z",
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


@pytest.mark.parametrize(
    ("constraint", "shown"),
    [
        ("", {}),
        (
            "impersonate:user-info",
            {"authenticationMetadata": {"impersonationConstraint": "impersonate:user-info"}},
        ),
    ],
)
def test_who_acted_as_whom_and_by_what_right(constraint: str, shown: dict[str, Any]) -> None:
    at = context("DELETE", "/api/v1/namespaces/a/pods/b")
    at.impersonation = Impersonation(User("bob", ("h",), "u"), User("eve", ("g",)), constraint)
    at.user = at.impersonation.user
    event = json.loads(told(at, 200)[0])
    assert event["user"] == {"username": "eve", "groups": ["g"]}
    assert event["impersonatedUser"] == {"username": "bob", "groups": ["h"], "uid": "u"}
    assert {key: event[key] for key in event if key == "authenticationMetadata"} == shown


@pytest.mark.parametrize(
    ("headers", "remote", "ips"),
    [
        ({}, "", []),
        ({}, "10.0.0.9", ["10.0.0.9"]),
        ({"X-Forwarded-For": "1.2.3.4, 10.0.0.7"}, "10.0.0.9", ["1.2.3.4", "10.0.0.7", "10.0.0.9"]),
        ({"X-Forwarded-For": "me,,1.2.3.4"}, "1.2.3.4", ["1.2.3.4"]),
        ({"X-Real-Ip": "1.2.3.4"}, "10.0.0.9", ["1.2.3.4", "10.0.0.9"]),
        ({"X-Forwarded-For": "1.2.3.4", "X-Real-Ip": "1.2.3.4"}, "::1", ["1.2.3.4", "::1"]),
        ({"X-Real-Ip": "me"}, "::1", ["::1"]),
    ],
)
def test_where_a_request_came_from(headers: dict[str, str], remote: str, ips: list[str]) -> None:
    assert source_ips(Request("GET", "/", headers=headers, remote=remote)) == ips


def test_an_event_tells_the_address_and_no_more_of_a_client_than_is_good() -> None:
    at = context("DELETE", "/api/v1/namespaces/a/pods/b")
    at.request = Request("DELETE", at.info.path, headers={"User-Agent": "x" * 2000}, remote="::1")
    event = json.loads(told(at, 200)[0])
    assert (event["sourceIPs"], event["userAgent"]) == (["::1"], "x" * 1024 + "...TRUNCATED")


def test_nobody_fills_the_log_with_one_line() -> None:
    """What a stranger chooses is a megabyte each; his line is not."""
    much = "1.2.3.4," * (1 << 17)
    at = context("GET", f"/api/v1/namespaces/{much}/pods/{much}?{much}")
    at.request.headers = dict.fromkeys(("User-Agent", "X-Forwarded-For", "X-Real-Ip"), much)
    (line,) = told(at, 403)
    event = json.loads(line)
    assert len(line) < 40_000 and event["requestURI"].endswith("...TRUNCATED")
    assert event["userAgent"] == much[:1024] + "...TRUNCATED"
    assert set(event["sourceIPs"]) == {"1.2.3.4"} and len(event["sourceIPs"]) == 128


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            {"metadata": {"name": "a", "managedFields": [{}]}, "spec": {}},
            {"metadata": {"name": "a"}, "spec": {}},
        ),
        ({"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}),
        ({"data": {"managedFields": "x"}}, {"data": {"managedFields": "x"}}),
        (
            {"metadata": {}, "items": [{"metadata": {"managedFields": []}}, {"metadata": {"uid": "u"}}]},
            {"metadata": {}, "items": [{"metadata": {}}, {"metadata": {"uid": "u"}}]},
        ),
    ],
)
def test_managed_fields_are_left_out_where_a_policy_says_so(given: Any, kept: Any) -> None:
    assert json.loads(without_managed_fields(json.dumps(given).encode())) == kept


@pytest.mark.parametrize(
    ("mode", "holds", "kept"),
    [("batch", False, True), ("blocking", True, True), ("blocking-strict", True, False)],
)
async def test_who_waits_for_a_sink_that_loses_events(mode: str, *, holds: bool, kept: bool) -> None:
    """Only in the strict mode does it matter to a request."""

    class Leak(Lines):
        async def kept(self) -> bool:
            return False

    leak = Leak()
    leak.mode = mode
    log = AuditLog(Recording(DEFAULT), [leak], StandingClock(datetime.now(UTC)))
    assert (log.holds, await log.kept()) == (holds, kept)
