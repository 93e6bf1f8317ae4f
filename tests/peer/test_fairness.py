"""Issue 13, priority and fairness: the same requests have the same FlowSchema and priority level, and who is
refused is told the same.

Which they have is told in the headers of every answer, by UIDs; those are compared by the names they stand
for.
"""

from __future__ import annotations

import re
import select
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from peer.server import Asking, Server

BASE = "/apis/flowcontrol.apiserver.k8s.io/v1"
ACCESS = "/apis/authorization.k8s.io/v1"
SCHEMAS, LEVELS = f"{BASE}/flowschemas", f"{BASE}/prioritylevelconfigurations"
SCHEMA_HEADER, LEVEL_HEADER = "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"
LOOKS = 200
EVERYTHING = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "clusterScope": True,
    "namespaces": ["*"],
}
EVERY_PATH = {"verbs": ["*"], "nonResourceURLs": ["*"]}
AUTHENTICATED = "system:authenticated"
ACCOUNTS = "system:serviceaccounts"


class Who(NamedTuple):
    name: str
    groups: tuple[str, ...] = ()

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Impersonate_User": self.name,
            **({"Impersonate_Group": self.groups[0]} if self.groups else {}),
        }


USERS = (
    Who("jane"),
    Who("joe"),
    Who("ann", ("testers",)),
    Who("admin", ("system:masters",)),
    Who("system:node:n", ("system:nodes",)),
    Who("nobody's-node", ("system:nodes",)),
    Who("system:kube-scheduler"),
    Who("system:kube-controller-manager"),
    Who("system:serviceaccount:kube-system:a", (ACCOUNTS,)),
    Who("system:serviceaccount:default:a", (ACCOUNTS,)),
    Who("system:serviceaccount:default:b", (ACCOUNTS,)),
    Who("system:serviceaccount:defaults:a"),
    Who("system:serviceaccount:kube-system:"),
    Who("system:serviceaccount:kube-system:a:b"),
    Who("system:anonymous", ("system:unauthenticated",)),
    Who("last"),
)
NODE_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"
ASKS = (
    ("GET", "/healthz"),
    ("GET", "/livez/ping"),
    ("POST", "/readyz"),
    ("GET", "/version"),
    ("GET", "/apis/apps"),
    ("GET", "/nope/a/b"),
    ("GET", "/nope"),
    ("GET", "/api/v1/nodes/n"),
    ("GET", "/api/v1/nodes/n/status"),
    ("DELETE", "/api/v1/nodes/nope"),
    ("GET", "/api/v1/nodes/n/proxy/a"),
    ("GET", "/api/v1/namespaces/default"),
    ("GET", "/api/v1/namespaces/default/status"),
    ("GET", "/api/v1/pods"),
    ("GET", "/api/v1/namespaces/default/pods"),
    ("GET", "/api/v1/namespaces/other/pods/a"),
    ("GET", "/api/v1/namespaces/default/pods/a/status"),
    ("GET", "/api/v1/namespaces/default/pods/a/log"),
    ("GET", "/api/v1/namespaces/default/pods/a/exec"),
    ("GET", "/api/v1/namespaces/default/pods/a/proxy"),
    ("GET", "/api/v1/namespaces/default/services/a/proxy/b"),
    ("GET", "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1&resourceVersion=nope"),
    ("GET", "/api/v1/watch/namespaces/default/pods?resourceVersion=nope"),
    ("DELETE", "/api/v1/namespaces/nope/pods?dryRun=All"),
    ("GET", NODE_LEASE),
    ("PUT", NODE_LEASE),
    ("DELETE", NODE_LEASE),
    ("GET", "/apis/coordination.k8s.io/v1/leases"),
    ("GET", "/apis/apps/v1/namespaces/default/deployments/a/scale"),
    ("GET", "/apis/nope/v1/nopes"),
)


def subject(kind: str, **named: str) -> dict[str, Any]:
    return {"kind": kind, kind[0].lower() + kind[1:]: named}


def schema(
    name: str,
    precedence: int,
    level: str,
    subjects: list[Any],
    rules: list[Any],
    paths: list[Any] | None = None,
) -> dict[str, Any]:
    rule = {"subjects": subjects, "resourceRules": rules, "nonResourceRules": paths or []}
    spec = {
        "matchingPrecedence": precedence,
        "priorityLevelConfiguration": {"name": level},
        "distinguisherMethod": {"type": "ByNamespace"},
        "rules": [rule],
    }
    return {"metadata": {"name": name}, "spec": spec}


ANYBODY = [subject("User", name="*")]
PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["default"]}
CUSTOM = (
    schema("own-testers", 300, "system", [subject("Group", name="testers")], [EVERYTHING], [EVERY_PATH]),
    schema("own-b", 700, "node-high", [subject("User", name="joe")], [PODS]),
    schema("own-a", 700, "leader-election", ANYBODY, [{**PODS, "verbs": ["list"]}]),
    schema("own-cluster", 750, "system", [subject("User", name="joe")], [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True},
    ]),
    schema("own-account", 200, "workload-high", [subject("ServiceAccount", namespace="default", name="b")], [
        EVERYTHING,
    ]),
    schema("own-accounts", 8000, "system", [subject("ServiceAccount", namespace="default", name="*")], [
        {**EVERYTHING, "resources": ["pods/status", "deployments/scale", "leases"]},
    ]),
    schema("own-paths", 600, "workload-low", [subject("Group", name="*")], [], [
        {"verbs": ["get"], "nonResourceURLs": ["/nope/*", "/version"]},
    ]),
    schema("own-watches", 650, "workload-low", [subject("User", name="jane")], [
        {**EVERYTHING, "verbs": ["watch", "deletecollection"]},
    ]),
    schema("own-dangling", 150, "own-not-there", ANYBODY, [EVERYTHING], [EVERY_PATH]),
    schema("own-last", 10, "workload-high", [subject("User", name="last")], [EVERYTHING], [EVERY_PATH]),
)  # fmt: skip


def without_seats(name: str, length: int, queues: int = 1, hand: int = 1) -> dict[str, Any]:
    queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": length}
    limited = {
        "nominalConcurrencyShares": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Queue", "queuing": queuing},
    }
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


class Dealt(NamedTuple):
    """A level whose flows have a hand of its queues."""

    queues: int
    hand: int
    length: int


DEALT = [Dealt(1, 1, 3), Dealt(2, 1, 2), Dealt(4, 2, 2), Dealt(4, 4, 1), Dealt(8, 3, 2), Dealt(64, 8, 1)]


def dealt_name(dealt: Dealt) -> str:
    return "own-dealt-" + "-".join(map(str, dealt))


@pytest.fixture(scope="module", autouse=True)
def flow_schemas(kubernetes: Server, podling: Server) -> Iterator[None]:
    """The custom ones, made on both servers and gone by."""
    made = [(SCHEMAS, one) for one in CUSTOM]
    levels = [without_seats("own-tiny", 1), without_seats("own-wider", 2)]
    levels += [without_seats(dealt_name(dealt), dealt.length, dealt.queues, dealt.hand) for dealt in DEALT]
    for level in levels:
        name = level["metadata"]["name"]
        user = subject("User", name=name.removeprefix("own-"))
        made = [(LEVELS, level), (SCHEMAS, schema(name, 5, name, [user], [EVERYTHING])), *made]
    for server in (kubernetes, podling):
        for target, one in made:
            assert server.ask("POST", target, one).code == 201
        until_used(server)
    yield
    for server in (kubernetes, podling):
        for target, one in made:
            server.ask("DELETE", f"{target}/{one['metadata']['name']}")


def until_used(server: Server) -> None:
    """Kubernetes hears of what is written like any client."""
    with server.asking() as asking:
        for _ in range(LOOKS):
            found, names = told(asking, "GET", "/version", USERS[-1]), names_of(server)
            if names.get(found[0]) == "own-last":
                return
    pytest.fail(f"{server.name} does not use the schemas")


def names_of(server: Server) -> Mapping[str, str]:
    return {
        one["metadata"]["uid"]: one["metadata"]["name"]
        for target in (SCHEMAS, LEVELS)
        for one in server.ask("GET", target).body["items"]
    }


def told(asking: Asking, method: str, target: str, who: Who) -> tuple[str, str]:
    """The UIDs of FlowSchema and priority level, empty where the answer tells of none."""
    answer = asking.ask(method, target, {} if method in ("PUT", "POST") else None, **who.headers)
    return answer.headers.get(SCHEMA_HEADER, ""), answer.headers.get(LEVEL_HEADER, "")


def found(server: Server) -> Mapping[tuple[str, str, str], tuple[str, ...]]:
    names = {**names_of(server), "": ""}
    with server.asking() as asking:
        return {
            (who.name, *ask): tuple(names[one] for one in told(asking, *ask, who))
            for who in USERS
            for ask in ASKS
        }


def test_requests_have_the_same_schema_and_level(kubernetes: Server, podling: Server) -> None:
    theirs, ours = found(kubernetes), found(podling)
    assert len(theirs) >= 200 and len(set(theirs.values())) >= 15
    different = {ask: (one, ours[ask]) for ask, one in theirs.items() if one != ours[ask]}
    assert not different, different


def test_who_finds_the_queue_full_is_told_the_same(kubernetes: Server, podling: Server) -> None:
    theirs, ours = refused(kubernetes), refused(podling)
    assert theirs == ours and theirs[0] == 429


def refused(server: Server) -> tuple[Any, ...]:
    """Two ask at the same time for a level without seats, where one may wait: the other is answered."""
    with ExitStack() as open_:
        asked = [open_.enter_context(server.asking()).connection for _ in range(2)]
        for one in asked:
            one.request("GET", "/api/v1/namespaces/default/pods", headers={"Impersonate-User": "tiny"})
        waiting = open_.enter_context(ThreadPoolExecutor(len(asked)))
        answers = {waiting.submit(one.getresponse): one for one in asked}
        first = next(as_completed(answers))
        for answer, one in answers.items():
            if answer is not first:
                one.sock.shutdown(socket.SHUT_RDWR)
        said = first.result()
        names = {**names_of(server), "": ""}
        flow = [names[said.headers[name]] for name in (SCHEMA_HEADER, LEVEL_HEADER)]
        kept = ("Content-Type", "Retry-After", "X-Content-Type-Options", "Cache-Control")
        return said.status, said.read(), flow, {name: said.headers[name] for name in kept}


def filled(server: Server, level: str) -> tuple[Any, ...]:
    """Requests of one flow, one after another, until one is refused: how many wait before it in each queue,
    how many in all, what it is answered, and the reason that is counted."""
    target, who = "/api/v1/namespaces/default/pods", {"Impersonate-User": level.removeprefix("own-")}
    before = rejected(server, level)
    with ExitStack() as open_:
        for number in range(MOST_DEALT):
            asking = open_.enter_context(server.asking())
            # What comes after the handshake comes with an answer.
            asking.ask("GET", "/version")
            connection = asking.connection
            connection.request("GET", target, headers=who)
            while waiting_in(server, level) <= number:
                if select.select([connection.sock], [], [], 0)[0]:
                    said = connection.getresponse()
                    rows = [row for row in dump(server, "queues") if row["PriorityLevelName"] == level]
                    lengths = sorted(int(row["PendingRequests"]) for row in rows)
                    reasons = {
                        reason: count - before.get(reason, 0)
                        for reason, count in rejected(server, level).items()
                    }
                    held = [length for length in lengths if length]
                    return number, held, said.status, said.read(), reasons
    raise AssertionError("none is refused")


def waiting_in(server: Server, level: str) -> int:
    return sum(row["PriorityLevelName"] == level for row in dump(server, "requests"))


def rejected(server: Server, level: str) -> dict[str, int]:
    found = re.findall(REJECTED, server.ask("GET", "/metrics").body, re.MULTILINE)
    return {reason: int(count) for of, reason, count in found if of == level}


MOST_DEALT = 20
REJECTED = (
    r"^apiserver_flowcontrol_rejected_requests_total\{"
    r'flow_schema="[^"]*",priority_level="([^"]*)",reason="([^"]*)"\} (\d+)'
)


@pytest.mark.parametrize("dealt", DEALT)
def test_as_many_wait_as_a_hand_has_room_for(kubernetes: Server, podling: Server, dealt: Dealt) -> None:
    theirs, ours = (filled(server, dealt_name(dealt)) for server in (kubernetes, podling))
    assert ours == theirs
    assert ours[0] == dealt.hand * dealt.length and ours[4] == {"queue-full": 1}


DUMPS = "/debug/api_priority_and_fairness"
OTHERWISE = ("ArriveTime", "StartTime", "DispatchedRequests", "QueueIndex", "Index")
"""Columns that differ from run to run: flows are dealt other queues there."""


def dumped(server: Server) -> tuple[Any, ...]:
    """The code of a request that finds the queue full where two wait; the rows of that level in all tables;
    and the names of all levels."""
    with ExitStack() as open_:
        several = [open_.enter_context(server.asking()).connection for _ in range(2)]
        for one in several:
            one.request("GET", "/api/v1/namespaces/default/pods?a=b", headers={"Impersonate-User": "wider"})
        for _ in range(LOOKS):
            tables = {name: dump(server, name) for name in ("priority_levels", "queues", "requests")}
            if len([row for row in tables["requests"][1:] if row["PriorityLevelName"] == "own-wider"]) == 2:
                break
        with server.asking() as third:
            refused = third.ask("GET", "/api/v1/pods", Impersonate_User="wider").code
        tables |= {name: dump(server, name) for name in ("priority_levels", "queues")}
        detailed = dump(server, "requests", "?includeRequestDetails=0")
        own = [
            {key: value for key, value in row.items() if key not in OTHERWISE}
            for rows in (*tables.values(), detailed)
            for row in rows
            if row["PriorityLevelName"] == "own-wider"
        ]
        return refused, own, [row["PriorityLevelName"] for row in tables["priority_levels"]]


def dump(server: Server, name: str, query: str = "") -> list[dict[str, str]]:
    answer = server.ask("GET", f"{DUMPS}/dump_{name}{query}")
    assert (answer.code, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    header, *rows = (re.split(r", *", line) for line in answer.body.splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_what_waits_is_told_the_same(kubernetes: Server, podling: Server) -> None:
    theirs, ours = dumped(kubernetes), dumped(podling)
    assert theirs[0] == 429 and len(theirs[1]) >= 6
    assert ours[1] == theirs[1]
    assert ours == theirs


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "dump_queues"), ("HEAD", "dump_requests"), ("GET", "dump_queues/"), ("GET", "")],
)
def test_where_what_waits_is_told(kubernetes: Server, podling: Server, method: str, path: str) -> None:
    theirs, ours = (server.ask(method, f"{DUMPS}/{path}").code for server in (kubernetes, podling))
    assert ours == theirs


WATCHERS = 11
ESTIMATED = r'^apiserver_flowcontrol_work_estimated_seats_sum\{flow_schema="own-last",.*\} (\S+)'


def test_writes_are_as_wide_as_their_watchers(kubernetes: Server, podling: Server) -> None:
    theirs, ours = widths(kubernetes), widths(podling)
    assert theirs == ours == [1.0, 2.0, 1.0]


def widths(server: Server) -> list[float]:
    """The seats of a write that few watch, of one that many watch, and of a review that is no write."""
    write = ("POST", "/api/v1/namespaces/default/podtemplates?dryRun=All")
    found = []
    with ExitStack() as open_:
        for number, ask in enumerate((write, write, ("POST", f"{ACCESS}/selfsubjectaccessreviews"))):
            if number == 1:
                for _ in range(WATCHERS):
                    watch = open_.enter_context(server.asking()).connection
                    watch.request("GET", "/api/v1/podtemplates?watch=1&timeoutSeconds=60")
                    watch.getresponse()
            before = seats(server)
            server.ask(*ask, {}, Impersonate_User="last")
            found.append(seats(server) - before)
    return found


def seats(server: Server) -> float:
    told = re.search(ESTIMATED, server.ask("GET", "/metrics").body, re.MULTILINE)
    return float(told[1]) if told else 0.0


OF_ITS_CLOCK = (
    *("current_r", "dispatch_r", "latest_s", "next_discounted_s_bounds", "next_s_bounds"),
    *("demand_seats", "seat_fair_frac", "target_seats"),
    *("priority_level_request_utilization", "priority_level_seat_utilization"),
    *("read_vs_write_current_requests", "request_queue_length_after_enqueue", "watch_count_samples"),
)
"""What kube-apiserver says of its virtual time, of what it finds every ten seconds, and of samples that it
takes: podling lends seats at once (decision 053)."""
FLOWCONTROL = re.compile(r"^(apiserver_flowcontrol_\w+)(?:\{([^}]*)\})? ", re.MULTILINE)


def test_metrics_have_the_same_names(kubernetes: Server, podling: Server) -> None:
    """After the requests above, with the labels that they have."""

    def series(server: Server) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name, labels in FLOWCONTROL.findall(server.ask("GET", "/metrics").body):
            kept = {one.partition("=")[0] for one in labels.split(",") if not one.startswith("le=")}
            found.setdefault(name, set()).update(kept)
        return found

    theirs, ours = series(kubernetes), series(podling)
    for name in theirs:
        if name.startswith(tuple(f"apiserver_flowcontrol_{one}" for one in OF_ITS_CLOCK)):
            assert name not in ours
        else:
            assert ours[name] == theirs[name]
    assert ours.keys() <= theirs.keys()
