"""R-SYS-8: namespaces that end, and deletions of every sort, are those of Kubernetes: what the options of one
say together, what finalizers change of it, what an object that is being deleted may still become, how
owners, names and versions are judged, and of which kinds a PUT creates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import pytest

from peer.every_kind import PROTECTED, Sample, removal, samples
from peer.named_differences import unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

BASE = "/api/v1/namespaces/{ns}"
MAPS, PODS, ACCOUNTS, SECRETS = (
    f"{BASE}/{plural}" for plural in ("configmaps", "pods", "serviceaccounts", "secrets")
)
SETS = "/apis/apps/v1/namespaces/{ns}/replicasets"
JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
NAMESPACES = "/api/v1/namespaces"
DRY = "?dryRun=All"
MERGE, STRATEGIC, JSON = ({"Content_Type": sort} for sort in (MERGE_PATCH, STRATEGIC_PATCH, JSON_PATCH))
HELD = ["peer.test/keep"]
UID = "11111111-1111-1111-1111-111111111111"


def named(name: str, fields: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, **(fields or {})}


def pod(name: str = "p", spec: Any = None, **metadata: Any) -> dict[str, Any]:
    bare = {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i:1"}]}
    return named(name, {"spec": {**bare, **(spec or {})}}, **metadata)


def scheduled(name: str, **metadata: Any) -> dict[str, Any]:
    return pod(name, {"nodeName": "n"}, **metadata)


def a_set(name: str = "s", **metadata: Any) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod(labels={"a": "b"}), "replicas": 0}
    return named(name, {"spec": spec}, **metadata)


def a_job(name: str = "j", **metadata: Any) -> dict[str, Any]:
    return named(name, {"spec": {"template": pod(spec={"restartPolicy": "Never"})}}, **metadata)


def ended() -> list[Ask]:
    """A namespace that is being terminated: what may still be done in it. It is one beside the test's own."""
    ns = f"{NAMESPACES}/{{ns}}-ends"
    inside = (
        (f"{ns}/configmaps", named("m")),
        (f"{ns}/pods", pod()),
        (f"{ns}/serviceaccounts", named("a")),
        (f"{ns}/events", named("e", {"involvedObject": {"namespace": "{ns}-ends"}})),
        ("/apis/apps/v1/namespaces/{ns}-ends/replicasets", a_set()),
        ("/apis/coordination.k8s.io/v1/namespaces/{ns}-ends/leases", named("l")),
    )
    fresh = (
        *((items, {**body, "metadata": {**body["metadata"], "name": "new"}}) for items, body in inside),
        (f"{ns}/secrets", named("s", {"type": "kubernetes.io/service-account-token"})),
        (f"{ns}/resourcequotas", named("q")),
        (f"{ns}/limitranges", named("q", {"spec": {"limits": [{"type": "Pod"}]}})),
        (f"{ns}/services", named("q", {"spec": {"ports": [{"port": 1}]}})),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}-ends/roles",
            named("r", {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
        ),
        (f"{ns}/configmaps", named("Bad_")),
        (f"{ns}/configmaps", named("m")),
        (f"{ns}/configmaps", {"metadata": {"generateName": "generated-"}}),
        (f"{ns}/configmaps", {"metadata": {}}),
        (f"{ns}/configmaps", named("x", namespace="elsewhere")),
    )
    sets, more = "/apis/apps/v1/namespaces/{ns}-ends/replicasets", {"name": "e", "image": "i"}
    parts: list[tuple[str, str, Any, dict[str, str]]] = [
        ("POST", f"{ns}/pods/p/binding", named("p", {"target": {"name": "n"}}), {}),
        *(
            ("POST", f"{ns}/bindings", {"metadata": metadata, "target": {"name": "n"}}, {})
            for metadata in ({"name": "p"}, {"name": "none"}, {"name": ""}, {}, {"generateName": "x"})
        ),
        ("POST", f"{ns}/pods/p/binding", named("other", {"target": {"name": "n"}}), {}),
        ("POST", f"{ns}/pods/p/eviction", named("other"), {}),
        ("POST", f"{ns}/pods/p/eviction", named("p"), {}),
        ("POST", f"{ns}/pods/none/eviction", named("none"), {}),
        ("POST", f"{ns}/serviceaccounts/a/token", {}, {}),
        ("POST", f"{ns}/serviceaccounts/none/token", {}, {}),
        ("PATCH", f"{ns}/pods/p/status", {"status": {"phase": "Running"}}, MERGE),
        ("PATCH", f"{ns}/pods/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [more]}}, STRATEGIC),
        ("PATCH", f"{ns}/pods/p/resize", {"metadata": {}}, STRATEGIC),
        ("GET", f"{ns}/pods/p/log", None, {}),
        ("PATCH", f"{sets}/s/scale", {"spec": {"replicas": 0}}, MERGE),
        ("PATCH", f"{sets}/s/status", {"status": {"replicas": 1}}, MERGE),
        ("POST", "/apis/authorization.k8s.io/v1/namespaces/{ns}-ends/localsubjectaccessreviews",
         {"spec": {"user": "u", "resourceAttributes": {"namespace": "{ns}-ends", "verb": "get"}}}, {}),
    ]  # fmt: skip
    group = {"apiVersion": "v1", "kind": "ConfigMap"}
    applied = {"Content_Type": APPLY}

    def tried() -> Iterator[Ask]:
        for items, body in fresh:
            yield Ask("POST", f"{items}{DRY}", body)
        yield Ask("PATCH", f"{ns}/configmaps/new{DRY}&fieldManager=m", {**group, **named("new")}, applied)
        yield Ask("PATCH", f"{ns}/configmaps/m{DRY}&fieldManager=m", {**group, **named("m")}, applied)
        yield Ask("PUT", "/apis/coordination.k8s.io/v1/namespaces/{ns}-ends/leases/new" + DRY, named("new"))
        yield Ask("PUT", "/apis/coordination.k8s.io/v1/namespaces/{ns}-ends/leases/l" + DRY, named("l"))
        for items, body in inside:
            yield Ask("PUT", f"{items}/{body['metadata']['name']}{DRY}", body)
            yield Ask(
                "PATCH",
                f"{items}/{body['metadata']['name']}{DRY}",
                {"metadata": {"labels": {"a": "c"}}},
                MERGE,
            )
            yield Ask("PATCH", f"{items}/new{DRY}", {"metadata": {"labels": {"a": "c"}}}, MERGE)
        for method, target, body, headers in parts:
            yield Ask(method, f"{target}{DRY}", body, headers)

    return [
        *tried(),
        Ask("POST", NAMESPACES, named("{ns}-ends", {"spec": {"finalizers": HELD}}, finalizers=HELD)),
        *(Ask("POST", items, body) for items, body in inside),
        *tried(),
        Ask("DELETE", f"{ns}{DRY}"),
        Ask("POST", f"{ns}/configmaps{DRY}", named("new")),
        Ask("DELETE", ns),
        Ask("POST", f"{ns}/configmaps{DRY}", named("new"), until=403),
        *tried(),
        *(Ask("DELETE", f"{items}/{body['metadata']['name']}{DRY}") for items, body in inside),
        Ask("DELETE", f"{ns}/configmaps"),
        Ask("DELETE", f"{ns}/pods?gracePeriodSeconds=0"),
        Ask("GET", f"{ns}/pods"),
        Ask("DELETE", ns),
        Ask("DELETE", f"{ns}?propagationPolicy=Orphan"),
        Ask("DELETE", f"{ns}?gracePeriodSeconds=5"),
        Ask("DELETE", ns, {"preconditions": {"uid": UID}}),
        Ask("POST", NAMESPACES, named("{ns}-ends")),
        Ask("PATCH", ns, {"metadata": {"labels": {"a": "b"}}}, MERGE),
        Ask("PATCH", ns, {"metadata": {"finalizers": [*HELD, "peer.test/more"]}}, MERGE),
        Ask("PATCH", ns, {"spec": {"finalizers": None}}, MERGE),
        Ask("PUT", f"{ns}/finalize", named("{ns}-ends")),
        Ask("GET", ns),
        Ask("PATCH", ns, {"metadata": {"finalizers": None}}, MERGE),
        Ask("GET", ns),
        Ask("POST", f"{ns}/configmaps{DRY}", named("new"), until=404),
        *tried(),
    ]  # fmt: skip


def namespaces() -> list[Ask]:
    own = f"{NAMESPACES}/{{ns}}-own"
    label = "kubernetes.io/metadata.name"
    specs: list[dict[str, Any]] = [
        {},
        {"spec": {}},
        {"spec": {"finalizers": None}},
        {"spec": {"finalizers": []}},
        {"spec": {"finalizers": ["kubernetes"]}},
        {"spec": {"finalizers": ["kubernetes", "kubernetes"]}},
        {"spec": {"finalizers": ["peer.test/a", "kubernetes"]}},
        {"spec": {"finalizers": ["orphan"]}},
        {"spec": {"finalizers": ["foregroundDeletion", "orphan"]}},
        {"spec": {"finalizers": ["odd"]}},
        {"spec": {"finalizers": [""]}},
        {"spec": {"finalizers": ["a b/c", "odd"]}},
        {"status": {"phase": "Terminating"}},
        {"status": {"phase": "Odd"}},
        {"status": {"phase": ""}},
        {"status": {"conditions": [{"type": "A", "status": "True"}]}},
    ]
    labels: list[Any] = [
        None,
        {},
        {"a": "b"},
        {label: "other"},
        {label: ""},
        {label: "{ns}-own"},
        {label: None},
    ]
    metas: list[dict[str, Any]] = [
        {"namespace": "x"},
        {"namespace": "{ns}-own"},
        {"finalizers": ["odd"]},
        {"finalizers": ["kubernetes"]},
        {"finalizers": ["orphan", "foregroundDeletion"]},
        {"generation": 5},
        {"deletionTimestamp": "2026-01-02T03:04:05Z"},
        *(
            {"name": name}
            for name in ("x.y", "X", "x" * 63, "x" * 64, "-", "1", "default", "kube-system", "")
        ),
        *({"name": None, "generateName": name} for name in ("x.", "X", "-")),
    ]
    statuses: list[Any] = [
        *({"phase": phase} for phase in ("Active", "Terminating", "Odd", "", None)),
        {"conditions": [{"type": "A", "status": "True"}]},
        {"conditions": [{"type": "A"}]},
        {"conditions": [{}]},
        {"phase": "Active", "conditions": [{"type": "A", "status": "x"}, {"type": "A", "status": "y"}]},
        None,
    ]

    def changes() -> Iterator[Ask]:
        for one in specs:
            yield Ask("PUT", f"{own}{DRY}", named("{ns}-own", one))
            yield Ask("PUT", f"{own}/finalize{DRY}", named("{ns}-own", one))
            yield Ask("PUT", f"{own}/status{DRY}", named("{ns}-own", one))
            yield Ask("PATCH", f"{own}{DRY}", one, MERGE)
        for status in statuses:
            yield Ask("PATCH", f"{own}/status{DRY}", {"status": status}, MERGE)
        for each in labels:
            yield Ask("PUT", f"{own}{DRY}", named("{ns}-own", labels=each))
            yield Ask("PUT", f"{own}/finalize{DRY}", named("{ns}-own", labels=each))
            yield Ask("PATCH", f"{own}{DRY}", {"metadata": {"labels": each}}, MERGE)
            yield Ask("PATCH", f"{own}/status{DRY}", {"metadata": {"labels": each}}, MERGE)
        for meta in metas:
            yield Ask("PUT", f"{own}{DRY}", {"metadata": {"name": "{ns}-own", **meta}})
            yield Ask("PUT", f"{own}/finalize{DRY}", {"metadata": {"name": "{ns}-own", **meta}})
        for method in ("GET", "POST", "PATCH", "DELETE"):
            yield Ask(method, f"{own}/finalize", {}, MERGE)
        for version in ("1", "x", "0"):
            yield Ask("PUT", f"{own}/finalize{DRY}", named("{ns}-own", resourceVersion=version))
        yield Ask("PUT", f"{own}/finalize{DRY}", named("{ns}-own", uid=UID))
        yield Ask("PUT", f"{own}/finalize{DRY}", named("other"))
        yield Ask("PUT", f"{own}/finalize{DRY}", {})
        yield Ask("PUT", f"{own}/finalize?dryRun=x", named("{ns}-own"))

    return [
        *(Ask("POST", f"{NAMESPACES}{DRY}", named("{ns}-own", one)) for one in specs),
        *(Ask("POST", f"{NAMESPACES}{DRY}", named("{ns}-own", labels=each)) for each in labels),
        *(
            Ask("POST", f"{NAMESPACES}{DRY}", {"metadata": {"name": "{ns}-own", **meta}})
            for meta in metas
            if meta.get("name", "x")
        ),
        Ask("POST", NAMESPACES, named("{ns}-own", {"spec": {"finalizers": HELD}})),
        *changes(),
        *(
            Ask("DELETE", f"{NAMESPACES}/{name}{options}")
            for name in ("default", "kube-system", "kube-public", "kube-node-lease")
            for options in (DRY, f"{DRY}&propagationPolicy=Orphan", f"{DRY}&gracePeriodSeconds=-1")
        ),
        *(Ask("DELETE", f"{NAMESPACES}/{name}") for name in ("default", "kube-system", "kube-public")),
        Ask("DELETE", f"{NAMESPACES}/default", {"preconditions": {"uid": UID}}),
        Ask("DELETE", f"{NAMESPACES}/default", {"propagationPolicy": "x"}),
        Ask("DELETE", NAMESPACES),
        *(Ask("DELETE", f"{own}{DRY}&{options}") for options in OPTIONS),
        Ask("DELETE", own),
        *changes(),
        Ask("PUT", f"{own}/finalize", named("{ns}-own", {"spec": {"finalizers": ["kubernetes"]}})),
        Ask("PUT", f"{own}/finalize", named("{ns}-own", finalizers=HELD)),
        Ask("GET", own),
        Ask("POST", NAMESPACES, named("{ns}-own", finalizers=HELD)),
        Ask("PUT", f"{own}/finalize", named("{ns}-own", finalizers=HELD)),
        Ask("DELETE", own),
        Ask("GET", own),
        Ask("PATCH", own, {"metadata": {"finalizers": None}}, MERGE),
        Ask("GET", own),
    ]  # fmt: skip


OPTIONS = (
    "propagationPolicy=Orphan", "propagationPolicy=Foreground", "propagationPolicy=Background",
    "propagationPolicy=", "propagationPolicy=orphan",
    "orphanDependents=true", "orphanDependents=false", "orphanDependents=",
    "propagationPolicy=Orphan&orphanDependents=false", "propagationPolicy=x&orphanDependents=true",
    "propagationPolicy=Orphan&propagationPolicy=Foreground",
    "gracePeriodSeconds=0", "gracePeriodSeconds=1", "gracePeriodSeconds=-1", "gracePeriodSeconds=",
    "gracePeriodSeconds=0&gracePeriodSeconds=5", "gracePeriodSeconds=9223372036854775807",
    "gracePeriodSeconds=1.5", "gracePeriodSeconds=%2B5",
    "dryRun=All", "dryRun=x", "uid=" + UID, "uid=", "resourceVersion=1", "resourceVersion=0",
    "resourceVersion=x", "preconditions=x", "preconditions.uid=x",
    "ignoreStoreReadErrorWithClusterBreakingPotential=true",
    "ignoreStoreReadErrorWithClusterBreakingPotential=false",
    "ignoreStoreReadErrorWithClusterBreakingPotential=true&propagationPolicy=Orphan",
    "ignoreStoreReadErrorWithClusterBreakingPotential=true&gracePeriodSeconds=1",
    "fieldManager=x", "fieldValidation=Strict",
)  # fmt: skip
DANGEROUS = "ignoreStoreReadErrorWithClusterBreakingPotential"
BODIES: list[Any] = [
    {},
    *({"propagationPolicy": policy} for policy in ("Orphan", "Foreground", "Background", "", "x", None)),
    *({"orphanDependents": said} for said in (True, False, None)),
    {"propagationPolicy": "", "orphanDependents": True},
    {"propagationPolicy": "Background", "orphanDependents": False},
    {"propagationPolicy": "x", "orphanDependents": True, "dryRun": ["y"]},
    *({"gracePeriodSeconds": seconds} for seconds in (0, 1, -1, -5, (1 << 63) - 1, None)),
    {"gracePeriodSeconds": 1 << 63},
    *({"preconditions": one} for one in (None, {}, {"uid": ""}, {"uid": None}, {"uid": UID})),
    *({"preconditions": {"resourceVersion": one}} for one in ("", "0", "1", "x")),
    {"preconditions": {"uid": UID, "resourceVersion": "1"}},
    {"preconditions": {"unknown": 1}},
    *({DANGEROUS: said} for said in (True, False, None)),
    {DANGEROUS: True, "propagationPolicy": "Orphan"},
    {DANGEROUS: True, "orphanDependents": True},
    {DANGEROUS: True, "gracePeriodSeconds": 0},
    {DANGEROUS: True, "preconditions": {"uid": UID}},
    {DANGEROUS: True, "dryRun": ["All"], "propagationPolicy": "x"},
    {"dryRun": []},
    {"dryRun": ["All", "All"]},
    {"dryRun": ["All", "x"]},
    {"dryRun": [""]},
    {"kind": "DeleteOptions", "apiVersion": "v1"},
    {"kind": "DeleteOptions", "apiVersion": "apps/v1"},
    {"kind": "DeleteOptions", "apiVersion": "policy/v1"},
    {"kind": "DeleteOptions"},
    {"apiVersion": "v1"},
    {"kind": "Status", "apiVersion": "v1"},
    {"unknown": 1},
    {"metadata": {"name": "x"}},
]


def options() -> list[Ask]:
    """Of kinds with and without dependents, with and without a grace period."""
    # Of a class that no volume has: it stays, and controllers of other tests would bind it.
    claimed = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "none",
    }
    controller = {"replicas": 0, "template": pod(labels={"a": "b"})}
    kinds = (
        (MAPS, named("m")),
        (PODS, pod("m")),
        (PODS, pod("n", {"nodeName": "n"})),
        (SETS, a_set("m")),
        (JOBS, a_job("m")),
        (ACCOUNTS, named("m")),
        (f"{BASE}/replicationcontrollers", named("m", {"spec": controller})),
        ("/apis/apps/v1/namespaces/{ns}/deployments", a_set("m")),
        (f"{BASE}/services", named("m", {"spec": {"clusterIP": "None", "ports": [{"port": 1}]}})),
        (f"{BASE}/endpoints", named("m")),
        (f"{BASE}/persistentvolumeclaims", named("m", {"spec": claimed})),
    )  # fmt: skip
    asks = []
    for items, body in kinds:
        item = f"{items}/{body['metadata']['name']}"
        asks.append(Ask("POST", items, body))
        for one in OPTIONS:
            dry = "" if one.startswith("dryRun=x") else "&dryRun=All"
            asks.append(Ask("DELETE", f"{item}?{one}{dry}"))
        for sent in BODIES:
            kept = (
                {"dryRun": ["All"], **sent}
                if sent.get("dryRun") != []
                else {**sent, "propagationPolicy": "x"}
            )
            asks.append(Ask("DELETE", item, kept))
        for query, sent in product(
            ("propagationPolicy=x", "dryRun=All", "gracePeriodSeconds=x", f"uid={UID}"),
            ({"dryRun": ["All"]}, {"dryRun": ["All"], "propagationPolicy": "Orphan"}),
        ):
            asks.append(Ask("DELETE", f"{item}?{query}", sent))
        asks.append(Ask("DELETE", f"{item}?gracePeriodSeconds=0&propagationPolicy=Background"))
    return asks


def finalizers() -> list[Ask]:
    """How finalizers of dependents come and go by deletions, one after the other."""
    policies: list[dict[str, Any]] = [
        {},
        *({"propagationPolicy": policy} for policy in ("Orphan", "Foreground", "Background")),
        *({"orphanDependents": said} for said in (True, False)),
        {"gracePeriodSeconds": 0},
    ]
    starts: list[list[str]] = [
        HELD,
        ["orphan"],
        ["foregroundDeletion"],
        ["orphan", *HELD],
        [*HELD, "foregroundDeletion"],
        [*HELD, "orphan", "peer.test/more"],
    ]
    makers: tuple[tuple[str, Callable[..., dict[str, Any]]], ...] = (
        (MAPS, named),
        (PODS, pod),
        (PODS, scheduled),
        (SETS, a_set),
        (JOBS, a_job),
        (ACCOUNTS, named),
    )
    asks, number = [], 0
    bare = {"metadata": {"finalizers": None}}
    for items, make in makers:
        for start in starts:
            number += 1
            item = f"{items}/d{number}"
            asks.append(Ask("POST", items, make(f"d{number}", finalizers=start)))
            # Of one that a dry run would take all finalizers Kubernetes answers with an empty object.
            asks += [
                Ask("DELETE", item, {**one, "dryRun": ["All"]}, what=f"{start} {one}")
                for one in policies
                if len(start) > 1
                or start == HELD
                or ("Background" not in str(one) and "False" not in str(one))
            ]
        for start, policy in product(starts, policies):
            if items in (MAPS, SETS) or make is scheduled:
                continue
            number += 1
            item = f"{items}/d{number}"
            asks += [
                Ask("POST", items, make(f"d{number}", finalizers=start)),
                Ask("DELETE", item, policy, what=f"{start} {policy}"),
                Ask("GET", item),
                Ask("PATCH", item, {"metadata": {"finalizers": ["orphan"]}}, MERGE),
                Ask("DELETE", item, policy),
                Ask("GET", item),
                Ask("PATCH", item, bare, MERGE),
                Ask("DELETE", item, {"gracePeriodSeconds": 0}),
            ]
        for first, second in product(policies, policies):
            if items in (SETS, ACCOUNTS) or make is pod:
                continue
            number += 1
            item = f"{items}/d{number}"
            asks += [
                Ask("POST", items, make(f"d{number}", finalizers=HELD)),
                Ask("DELETE", item, first, what=f"{first} then {second}"),
                Ask("DELETE", item, second),
                Ask("PATCH", item, bare, MERGE),
                Ask("DELETE", item, {"gracePeriodSeconds": 0}),
            ]
    asks += [Ask("GET", items) for items in (MAPS, PODS, SETS, JOBS)]
    return asks


METADATA: list[dict[str, Any]] = [
    {"labels": {"a": "b"}},
    {"finalizers": [*HELD, "peer.test/new"]},
    {"finalizers": ["peer.test/new"]},
    {"finalizers": ["peer.test/more", *HELD]},
    {"finalizers": ["peer.test/more"]},
    {"finalizers": [*HELD, *HELD]},
    {"finalizers": [*HELD, "orphan"]},
    {"finalizers": [*HELD, "foregroundDeletion", "orphan"]},
    {"finalizers": ["odd"]},
    {"finalizers": None},
    {"finalizers": []},
    {"deletionTimestamp": None},
    {"deletionTimestamp": "2026-01-02T03:04:05Z"},
    {"deletionGracePeriodSeconds": None},
    {"deletionGracePeriodSeconds": 5},
    {"deletionGracePeriodSeconds": -1},
    {"generation": 9},
    {"creationTimestamp": None},
    {"creationTimestamp": "2026-01-02T03:04:05Z"},
    {"uid": None},
    {"uid": UID},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
    {"managedFields": None},
    {"managedFields": [{}]},
    {"selfLink": "/a"},
]


def _changes(item: str, body: dict[str, Any], own: dict[str, Any], part: str) -> Iterator[Ask]:
    """`own`: a change of the object's own fields; `part`: a subresource of it, if it has one."""
    held = body["metadata"]["finalizers"]
    for meta in METADATA:
        whole = {**body, "metadata": {**body["metadata"], **meta}}
        yield Ask("PATCH", f"{item}{DRY}", {"metadata": meta}, MERGE, str(meta))
        yield Ask("PUT", f"{item}{DRY}", whole, what=str(meta))
        if part:
            yield Ask("PATCH", f"{item}/{part}{DRY}", {"metadata": meta}, MERGE)
    yield Ask("PATCH", f"{item}{DRY}", own, MERGE)
    less = {"metadata": {"$deleteFromPrimitiveList/finalizers": held}}
    yield Ask("PATCH", f"{item}{DRY}", less, STRATEGIC)
    for change in (
        {"op": "remove", "path": "/metadata/finalizers/0"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "a.b/c"},
    ):
        yield Ask("PATCH", f"{item}{DRY}", [change], JSON)


def going() -> list[Ask]:
    """What an object may still become while it is being deleted."""
    held = [*HELD, "peer.test/more"]
    asks = []
    for items, body, part in (
        (MAPS, named("g", {"data": {"a": "b"}}, finalizers=held), ""),
        (PODS, pod("g", finalizers=held), "status"),
        (SETS, a_set("g", finalizers=held), "status"),
    ):
        item = f"{items}/g"
        own: dict[str, Any] = {"data": {"a": "c"}} if items == MAPS else {"spec": {"replicas": 3}}
        if items == PODS:
            own = {"spec": {"activeDeadlineSeconds": 5}}

        asks += [
            Ask("POST", items, body),
            *_changes(item, body, own, part),
            Ask("DELETE", f"{item}?propagationPolicy=Background"),
            Ask("GET", item),
            *_changes(item, body, own, part),
            Ask("POST", items, body),
            Ask("PATCH", item, own, MERGE),
            Ask("DELETE", f"{item}?propagationPolicy=Background"),
            Ask("PATCH", item, {"metadata": {"finalizers": ["peer.test/more"]}}, MERGE),
            Ask("DELETE", f"{item}?propagationPolicy=Orphan"),
            Ask("PATCH", item, {"metadata": {"finalizers": ["orphan"]}}, MERGE),
            Ask("DELETE", f"{item}?propagationPolicy=Background"),
            Ask("GET", item),
        ]
    return asks  # fmt: skip


def graces() -> list[Ask]:
    """Pods, on a node and not, that get a time to end in, and get another one."""
    asks = []
    seconds = (
        "",
        "?gracePeriodSeconds=9223372036854775807",
        "?gracePeriodSeconds=0",
        "?gracePeriodSeconds=1",
        "?gracePeriodSeconds=60",
        "?gracePeriodSeconds=-1",
    )
    specs: list[dict[str, Any]] = [
        {},
        {"nodeName": "n"},
        {"nodeName": "n", "terminationGracePeriodSeconds": 5},
        {"nodeName": "n", "terminationGracePeriodSeconds": 0},
        {"nodeName": "n", "terminationGracePeriodSeconds": -3},
        {"nodeName": "n", "terminationGracePeriodSeconds": (1 << 63) - 1},
    ]
    number = 0
    for spec in specs:
        for first, second in (
            product(seconds, seconds) if spec in specs[1:3] else zip(seconds, seconds, strict=True)
        ):
            name, number = f"g{number}", number + 1
            item = f"{PODS}/{name}"
            asks += [
                Ask("POST", PODS, pod(name, spec)),
                Ask("DELETE", item + first, what=f"{spec} {first} {second}"),
                Ask("PATCH", f"{item}{DRY}", {"spec": {"terminationGracePeriodSeconds": 7}}, MERGE),
                Ask("DELETE", item + second),
                Ask("DELETE", f"{item}?gracePeriodSeconds=0"),
            ]
    for phase in ("Succeeded", "Failed", "Running"):
        asks += [
            Ask("POST", PODS, pod(phase.lower(), {"nodeName": "n"})),
            Ask("PATCH", f"{PODS}/{phase.lower()}/status", {"status": {"phase": phase}}, MERGE),
            Ask("DELETE", f"{PODS}/{phase.lower()}"),
            Ask("DELETE", f"{PODS}/{phase.lower()}?gracePeriodSeconds=0"),
        ]
    return asks


def _evicted(name: str, options: Any, query: str = "", **more: Any) -> Ask:
    body = named(name, {"deleteOptions": options, **more})
    return Ask("POST", f"{PODS}/{name}/eviction{query}", body, what=str(options))


def evictions() -> list[Ask]:
    """Deletions that somebody asks for by the eviction of a pod."""
    asks: list[Ask] = []
    for name, make, held in (
        ("a", pod, []),
        ("b", scheduled, []),
        ("c", scheduled, HELD),
        ("d", pod, HELD),
        ("e", pod, ["orphan"]),
    ):
        item = f"{PODS}/{name}"
        asks.append(Ask("POST", PODS, make(name, finalizers=held)))
        base = len(asks) - 1

        evicted = partial(_evicted, name)
        for sent in BODIES:
            # After a conflict Kubernetes tries again for ten seconds.
            if sent.get("preconditions"):
                continue
            sent = {"dryRun": ["All"], **sent}
            asks.append(evicted(sent))
            if sent["dryRun"] == ["All"]:
                asks.append(evicted({**sent, "dryRun": None}, DRY))
        for query, said in product(
            (DRY, f"{DRY}&dryRun=All", "?dryRun=", "?dryRun=&dryRun=All"), (["All"], ["All"] * 2, ["x"], [""])
        ):
            asks.append(evicted({"dryRun": said}, query))
        asks += [
            Ask("POST", f"{PODS}/none/eviction{DRY}", named("none", {"deleteOptions": {"dryRun": ["x"]}})),
            Ask("POST", f"{item}/eviction{DRY}", named("other", {"deleteOptions": {"dryRun": ["x"]}})),
            evicted(None, DRY),
            evicted({}, "?dryRun=x"),
            evicted({"preconditions": {"uid": f"${base}.metadata.uid"}}, DRY),
            evicted({}, DRY, kind="Eviction", apiVersion="policy/v1"),
            evicted({}, DRY, kind="Eviction", apiVersion="policy/v1beta1"),
            evicted({}, DRY, kind="Eviction", apiVersion="v1"),
            evicted({}, DRY, kind="Pod", apiVersion="v1"),
            evicted({}, f"{DRY}&fieldValidation=Strict", unknown=1),
            *(
                Ask("POST", f"{item}/eviction{DRY}", {"metadata": metadata}, what=str(metadata))
                for metadata in (
                    {},
                    {"name": ""},
                    {"name": "other"},
                    {"name": name, "namespace": "other"},
                    {"name": name, "namespace": "{ns}", "uid": UID, "resourceVersion": "1"},
                    {"name": name, "labels": {"a b": "c"}},
                    {"generateName": name},
                )
            ),
            evicted({"propagationPolicy": "Foreground", "gracePeriodSeconds": 7}),
            Ask("GET", item),
            evicted({"gracePeriodSeconds": 3}),
            Ask("GET", item),
            evicted({"propagationPolicy": "Orphan"}),
            Ask("GET", item),
            evicted({"propagationPolicy": "Background", "gracePeriodSeconds": 0}),
            Ask("PATCH", item, {"metadata": {"finalizers": None}}, MERGE),
            Ask("DELETE", item, {"gracePeriodSeconds": 0}),
            evicted({}),
        ]
    return asks


def watched() -> list[Ask]:
    """What is told of deletions to who watches."""
    sets: tuple[tuple[str, Callable[..., dict[str, Any]], list[str]], ...] = (
        (MAPS, named, HELD),
        (PODS, pod, []),
        (PODS, pod, HELD),
        (PODS, scheduled, []),
        (PODS, scheduled, HELD),
        (JOBS, a_job, HELD),
        (ACCOUNTS, named, ["orphan"]),
        (PODS, pod, ["orphan"]),
        (PODS, pod, [*HELD, "orphan"]),
    )
    deletions: tuple[tuple[dict[str, Any], ...], ...] = (
        ({},),
        ({"propagationPolicy": "Background"},),
        ({"gracePeriodSeconds": 5}, {"gracePeriodSeconds": 0}),
        ({"gracePeriodSeconds": 5}, {"gracePeriodSeconds": 3}, {"propagationPolicy": "Orphan"}),
        ({"propagationPolicy": "Orphan"}, {"propagationPolicy": "Background", "gracePeriodSeconds": 0}),
        ({"gracePeriodSeconds": 5, "propagationPolicy": "Foreground"}, {"gracePeriodSeconds": 5}),
    )
    asks: list[Ask] = []
    begun: dict[str, int] = {}
    for number, ((items, make, held), deletion) in enumerate(product(sets, deletions)):
        begun.setdefault(items, len(asks))
        item = f"{items}/w{number}"
        asks.append(Ask("POST", items, make(f"w{number}", finalizers=held)))
        asks += [Ask("DELETE", item, each) for each in deletion]
        asks.append(Ask("PATCH", item, {"metadata": {"finalizers": ["orphan"]}}, MERGE))
        asks.append(Ask("DELETE", item, {"propagationPolicy": "Background"}))
        asks.append(Ask("PATCH", item, {"metadata": {"finalizers": None}}, MERGE))
        asks.append(Ask("DELETE", item, {"gracePeriodSeconds": 0}))
    for items, first in begun.items():
        version = f"resourceVersion=${first}.metadata.resourceVersion"
        asks.append(Ask("GET", f"{items}?watch=true&timeoutSeconds=2&{version}"))
    return asks


def collections() -> list[Ask]:
    asks: list[Ask] = []
    queries = (
        "labelSelector=a%3Db", "labelSelector=a%3Dc", "labelSelector=a%20in%20(b,c)", "labelSelector=!a",
        "fieldSelector=metadata.name%3Dx", "fieldSelector=metadata.name!%3Dx",
        "fieldSelector=metadata.namespace%3Dother", "fieldSelector=spec.nodeName%3Dx", "fieldSelector=bad",
        "labelSelector=a%3D%3D%3D", "limit=1", "limit=0", "limit=-1", "limit=x", "continue=x",
        "limit=1&labelSelector=a%3Db", "resourceVersion=0", "resourceVersion=1", "resourceVersion=x",
        "resourceVersion=0&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact",
            "resourceVersion=$0.metadata.resourceVersion&resourceVersionMatch=Exact",
        "timeoutSeconds=5", "timeoutSeconds=x", "watch=true", "allowWatchBookmarks=true",
        "sendInitialEvents=true",
        f"uid={UID}",
        "propagationPolicy=Orphan", "propagationPolicy=Foreground", "orphanDependents=true",
        "propagationPolicy=x",
        "gracePeriodSeconds=0", "gracePeriodSeconds=5", "gracePeriodSeconds=-1",
        f"{DANGEROUS}=true",
    )  # fmt: skip
    for items, make in ((MAPS, named), (PODS, pod), (SETS, a_set), (SECRETS, named), (ACCOUNTS, named)):
        base = len(asks)
        asks += [
            Ask("POST", items, make("x", labels={"a": "b"})),
            Ask("POST", items, make("y", labels={"a": "c"}, finalizers=HELD)),
            Ask("POST", items, make("z")),
        ]
        for query in queries:
            query = query.replace("$0", f"${base}")
            asks.append(Ask("DELETE", f"{items}?dryRun=All&{query}"))
        for query in (
            "labelSelector=a%3Db",
            "labelSelector=a%3Dc",
            "labelSelector=a",
            "labelSelector=!a",
            "labelSelector=none",
            "fieldSelector=metadata.name%3Dx",
            "fieldSelector=metadata.name%3Dx&labelSelector=a",
            "fieldSelector=metadata.name!%3Dx",
            "fieldSelector=metadata.namespace%3D{ns}",
            "fieldSelector=metadata.namespace%3D{ns},metadata.name%3Dx",
            "",
        ):
            for limit, more in product((1, 2, 3), ("", "&resourceVersion=0")):
                selected = f"limit={limit}&{query}{more}"
                asks.append(Ask("GET", f"{items}?{selected}"))
                asks.append(Ask("DELETE", f"{items}?dryRun=All&{selected}"))
        for sent in BODIES:
            if sent.get("dryRun") != []:
                asks.append(Ask("DELETE", f"{items}?labelSelector=a%3Db", {"dryRun": ["All"], **sent}))
        asks += [
            Ask(
                "DELETE", f"{items}?labelSelector=a", {"propagationPolicy": "Orphan", "gracePeriodSeconds": 0}
            ),
            Ask("GET", items),
            Ask("DELETE", f"{items}?fieldSelector=metadata.name%3Dz&gracePeriodSeconds=0"),
            Ask("DELETE", f"{items}?limit=1&propagationPolicy=Background&gracePeriodSeconds=0"),
            Ask("GET", items),
            *(Ask("PATCH", f"{items}/{name}", {"metadata": {"finalizers": None}}, MERGE) for name in "xyz"),
            Ask("DELETE", f"{items}?gracePeriodSeconds=0&propagationPolicy=Background"),
            Ask("GET", items),
        ]
    return asks


def owners() -> list[Ask]:
    one = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    lists: list[Any] = [
        [],
        None,
        [one],
        [one, one],
        [one, {**one, "uid": "v"}],
        [one, {**one, "name": "q"}],
        [{**one, "controller": True}],
        [{**one, "controller": True}, {**one, "uid": "v", "controller": True}],
        [{**one, "controller": True}, {**one, "controller": True}],
        [{**one, "controller": False}, {**one, "uid": "v", "controller": True}],
        [{**one, "uid": str(number), "name": f"o{number}", "controller": True} for number in range(4)],
        [{**one, "blockOwnerDeletion": True}],
        [{**one, "blockOwnerDeletion": False, "controller": None}],
        [{**one, "blockOwnerDeletion": True}, one],
        [{**one, "namespace": "x"}],
        *([{**one, field: value}] for field in ("apiVersion", "kind", "name", "uid") for value in ("", None)),
        *(
            [{**one, "apiVersion": version}]
            for version in ("/", "/v1", "v1/", "a/b", "a/b/c", "odd", "apps/v1")
        ),
        [{**one, "kind": "Event"}],
        [{**one, "kind": "Event", "apiVersion": "events.k8s.io/v1"}],
        [{**one, "kind": "Event", "apiVersion": "/v1"}],
        [{**one, "kind": "Namespace", "name": "{ns}"}],
        [{**one, "kind": "Node"}, {**one, "kind": "Pod", "uid": "v"}],
        [{}],
        [{"uid": "u"}],
        ["x"],
        {},
    ]
    asks = []
    cluster = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    for items, name in ((MAPS, "n"), (cluster, "{ns}-n"), (NAMESPACES, "{ns}-n")):
        asks += [
            Ask("POST", f"{items}{DRY}", named(name, ownerReferences=each), what=str(each)) for each in lists
        ]
    asks.append(Ask("POST", MAPS, named("n", ownerReferences=[one])))
    for each in lists:
        asks.append(Ask("PUT", f"{MAPS}/n{DRY}", named("n", ownerReferences=each), what=str(each)))
        for headers in (MERGE, STRATEGIC):
            asks.append(
                Ask("PATCH", f"{MAPS}/n{DRY}", {"metadata": {"ownerReferences": each}}, headers, str(each))
            )
        asks.append(
            Ask(
                "PATCH",
                f"{MAPS}/n{DRY}&fieldManager=m",
                {"apiVersion": "v1", "kind": "ConfigMap", **named("n", ownerReferences=each)},
                {"Content_Type": APPLY},
                str(each),
            )
        )
    return asks


def versions() -> list[Ask]:
    """What a body says of name, version and uid beside the path and what is stored."""
    numbers = (
        "",
        "0",
        "00",
        "1",
        "01",
        "-1",
        "x",
        "1.5",
        "18446744073709551615",
        "18446744073709551616",
        "9" * 30,
    )
    asks: list[Ask] = []
    for items, body in (
        (MAPS, named("v")),
        (SETS, a_set("v")),
        ("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", named("v")),
        (
            "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
            named("v", {"spec": {"podSelector": {}}}),
        ),
        (PODS, pod("v")),
    ):
        item, meta = f"{items}/v", body["metadata"]
        base = len(asks)
        asks.append(Ask("POST", items, body))
        whole = {"apiVersion": "v1", "kind": "ConfigMap"} if items == MAPS else None
        said: tuple[dict[str, Any], ...] = (
            *({"resourceVersion": number} for number in numbers),
            {"resourceVersion": f"${base}.metadata.resourceVersion"},
            {"resourceVersion": f"0${base}.metadata.resourceVersion"},
            *({"uid": uid} for uid in ("", "x", UID)),
            {"uid": f"${base}.metadata.uid"},
            {"uid": UID, "resourceVersion": "1"},
            *({"name": name} for name in ("", "other", "Bad_", None)),
            {"name": "other", "resourceVersion": "1"},
            *({"namespace": name} for name in ("", "other", "{ns}", None)),
            {"name": "other", "namespace": "other"},
            {"generateName": "x"},
            {"generation": 7},
        )
        for metadata in said:
            sent = {**body, "metadata": {**meta, **metadata}}
            asks += [
                Ask("PUT", f"{item}{DRY}", sent, what=str(metadata)),
                Ask("PATCH", f"{item}{DRY}", {"metadata": metadata}, MERGE, str(metadata)),
                Ask("PATCH", f"{item}{DRY}", {"metadata": metadata}, STRATEGIC, str(metadata)),
                Ask("PUT", f"{items}/none{DRY}", {**body, "metadata": {"name": "none", **metadata}}),
                Ask("POST", f"{items}{DRY}", {**body, "metadata": {"name": "fresh", **metadata}})
                if metadata.get("name", "x")
                else Ask("POST", f"{items}{DRY}", {**body, "metadata": metadata}),
            ]
            if whole:
                asks += [
                    Ask(
                        "PATCH",
                        f"{items}/{name}{DRY}&fieldManager=m",
                        {**whole, "metadata": {"name": name, **metadata}},
                        {"Content_Type": APPLY},
                    )
                    for name in ("v", "none")
                ]
        for number in (*numbers, f"${base}.metadata.resourceVersion"):
            asks.append(
                Ask("DELETE", item, {"dryRun": ["All"], "preconditions": {"resourceVersion": number}})
            )
        asks.append(
            Ask(
                "PATCH",
                f"{item}{DRY}",
                [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}],
                JSON,
            )
        )
        asks.append(
            Ask(
                "PATCH",
                f"{item}{DRY}",
                [{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}],
                JSON,
            )
        )
    return asks  # fmt: skip


def creation(sample: Sample) -> Iterator[Ask]:
    """A PUT to what is not there, and what answers the deletion of it."""
    item, body = sample.item(), sample.body()
    meta = body["metadata"]
    for more in ({}, {"uid": UID}, {"resourceVersion": "1"}, {"resourceVersion": "0"}, {"generateName": "x"}):
        yield Ask("PUT", f"{item}{DRY}", {**body, "metadata": {**meta, **more}}, what=str(more))
    yield Ask("PUT", f"{item}{DRY}", {**body, "metadata": {**meta, "name": "other"}})
    yield Ask("PUT", f"{item}{DRY}", {**body, "metadata": {**meta, "name": ""}})
    yield Ask("PUT", f"{item}{DRY}", {**body, "metadata": {**meta, "finalizers": HELD, "generation": 7}})
    yield Ask("DELETE", item, {"preconditions": {"uid": UID}})
    yield Ask("DELETE", item, {"propagationPolicy": "x"})
    yield Ask("POST", sample.items, sample.body(finalizers=HELD))
    yield Ask("DELETE", item, {"preconditions": {"uid": UID}})
    yield Ask("DELETE", item, {"preconditions": {"resourceVersion": "1"}})
    yield Ask("DELETE", item, {"preconditions": {"uid": UID, "resourceVersion": "1"}})
    if sample.resource.kind != "Namespace":
        for policy in ("Orphan", "Background", "Foreground"):
            yield Ask("DELETE", f"{item}{DRY}&propagationPolicy={policy}")
        yield Ask("DELETE", item, {"dryRun": ["All"], "orphanDependents": False})
        yield Ask("DELETE", item, {"dryRun": ["All"], "gracePeriodSeconds": 3})
    yield Ask("PATCH", item, {"metadata": {"finalizers": None}}, MERGE)
    if sample.resource.kind not in (*PROTECTED, "CustomResourceDefinition"):
        yield Ask("DELETE", item, {"preconditions": {"uid": "$10.metadata.uid"}, "gracePeriodSeconds": 0})
        yield Ask("GET", item)
    yield from removal(sample)


SEQUENCES = [
    *(
        Compared(each.__name__, each(), apart=True)
        for each in (
            ended, namespaces, options, finalizers, going, graces, evictions, watched, collections,
            owners, versions,
        )
    ),
    *(Compared(f"{sample.name} created", list(creation(sample)), apart=True) for sample in samples()),
]  # fmt: skip


@pytest.mark.usefixtures("no_ranges_left")
@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_deletions(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = f"deletions-{SEQUENCES.index(sequence)}"
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
