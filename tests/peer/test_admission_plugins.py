"""R-SYS-8: the smaller admission plugins, usual ones and those that are chosen, answer as Kubernetes'."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from peer import control_plane
from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Answer, Server

NAMESPACES = "/api/v1/namespaces"
PODS, SERVICES = "/api/v1/namespaces/{ns}/pods", "/api/v1/namespaces/{ns}/services"
PREFIX = "pod-security.kubernetes.io/"
MERGE, STRATEGIC = {"Content_Type": MERGE_PATCH}, {"Content_Type": STRATEGIC_PATCH}
SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
CHOSEN = [
    "--enable-admission-plugins=AlwaysPullImages,DenyServiceExternalIPs,LimitPodHardAntiAffinityTopology,"
    "ExtendedResourceToleration,NamespaceAutoProvision,NamespaceExists,OwnerReferencesPermissionEnforcement,"
    "PodNodeSelector,AlwaysAdmit,EventRateLimit,PodTolerationRestriction"
]
CONFIGURATION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults:
      enforce: baseline
      audit: restricted
      audit-version: v1.20
      warn: restricted
      warn-version: v1.24
    exemptions:
      usernames: [alice]
      namespaces: [exempt]
      runtimeClasses: [exempt]
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - {type: Namespace, qps: 1, burst: 1000000}
    - {type: User, qps: 1, burst: 1000000, cacheSize: 1}
    - {type: Server, qps: 1, burst: 1000000}
    - {type: SourceAndObject, qps: 1, burst: 3}
- name: PodTolerationRestriction
  path: tolerations.yaml
- name: PodNodeSelector
  configuration:
    podNodeSelectorPluginConfig:
      clusterDefaultNodeSelector: every=where
      held-0: a=b,every=where
      held-1: ""
      held-2: a
      held-3: c=d
- name: PodSecurity
  configuration: {}
- name: LimitRanger
  configuration: {kind: nothing}
- name: NoSuchPlugin
"""
TOLERATIONS = """
apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
kind: Configuration
default:
- {key: usual, operator: Exists, effect: NoSchedule}
whitelist:
- {key: usual, operator: Exists}
- {key: node.kubernetes.io/memory-pressure, operator: Exists}
- {key: node.kubernetes.io/not-ready, operator: Exists}
- {key: node.kubernetes.io/unreachable, operator: Exists}
- {key: held, operator: Equal, value: x, effect: NoExecute, tolerationSeconds: 10}
- {key: example.com/a, operator: Exists}
- {key: example.com/b, operator: Exists}
"""


def pod(name: str, **more: Any) -> dict[str, Any]:
    labels = more.pop("labels", {})
    spec = {"containers": [{"name": "c", "image": "i:1"}], **more}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def privileged(name: str, **more: Any) -> dict[str, Any]:
    return pod(
        name, containers=[{"name": "c", "image": "i:1", "securityContext": {"privileged": True}}], **more
    )


def mountable() -> Compared:
    """Of an account that says so, pods use the secrets that it names and no others."""
    accounts = PODS.replace("/pods", "/serviceaccounts")
    annotated = {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "x"}}}
    known, other = {"secretName": "known"}, {"secretName": "other"}

    def container(name: str, secret: str) -> dict[str, Any]:
        key = {"secretKeyRef": {"name": secret, "key": "k"}}
        variables = [{"name": "PLAIN", "value": "x"}, {"name": "V", "valueFrom": key}]
        return {"name": name, "image": "i:1", "env": variables}

    def from_all(name: str, secret: str) -> dict[str, Any]:
        return {"name": name, "image": "i:1", "envFrom": [{"secretRef": {"name": secret}}]}

    def of(account: str, **spec: Any) -> Ask:
        return Ask("POST", f"{PODS}?dryRun=All", pod("p", serviceAccountName=account, **spec))

    def account(name: str, annotation: str) -> Ask:
        meta = {"name": name, "annotations": {"kubernetes.io/enforce-mountable-secrets": annotation}}
        secrets = [{"name": "known"}, {"name": "also"}]
        body = {"metadata": meta, "secrets": secrets, "imagePullSecrets": [{"name": "pulled"}]}
        return Ask("POST", accounts, body)

    def debugged(name: str, with_: dict[str, Any]) -> Ask:
        body = {"spec": {"ephemeralContainers": [with_]}}
        headers = {"Content_Type": "application/strategic-merge-patch+json"}
        return Ask("PATCH", f"{PODS}/{name}/ephemeralcontainers", body, headers)

    both = [{"name": "v", "secret": known}, {"name": "w", "secret": other}]
    projected = {"sources": [{"secret": {"name": "other"}}]}
    asks = [
        *(account(name, name) for name in ("true", "t", "1", "yes", "false")),
        Ask("PATCH", f"{accounts}/true", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        Ask("POST", accounts, {"metadata": {"name": "plain"}}),
        Ask("PATCH", f"{accounts}/plain", annotated, MERGE),
        *(of(name, volumes=both) for name in ("true", "t", "1", "yes", "false")),
        of("true", volumes=both[:1]),
        of("true", volumes=[{"name": "v", "projected": projected}]),
        of("true", containers=[container("a", "known"), container("b", "other")]),
        of("true", containers=[container("a", "known"), from_all("b", "other")]),
        of("true", containers=[{**from_all("a", "other"), **container("a", "elsewhere")}]),
        of("true", containers=[from_all("a", "other"), container("b", "elsewhere")]),
        of("true", initContainers=[container("i", "elsewhere")], containers=[container("a", "other")]),
        of("true", initContainers=[from_all("i", "other")]),
        of("true", initContainers=[container("i", "also")]),
        of("true", imagePullSecrets=[{"name": "pulled"}, {"name": "other"}]),
        of("true", imagePullSecrets=[{"name": "known"}], containers=[container("a", "other")]),
        Ask("POST", PODS, pod("debugged", serviceAccountName="true")),
        debugged("debugged", container("d", "known")),
        debugged("debugged", container("e", "other")),
        debugged("debugged", from_all("e", "other")),
        Ask("DELETE", f"{accounts}/true"),
        Ask("POST", f"{PODS}?dryRun=All", pod("p", serviceAccountName="true"), until=403),
        debugged("debugged", container("f", "known")),
    ]
    return Compared("mountable", asks)


def topology() -> Compared:
    labels = {ZONE: "z", REGION: "r", "topology.kubernetes.io/rack": "x", "other": "y"}
    asks = [
        Ask("POST", "/api/v1/nodes", {"metadata": {"name": "topology", "labels": labels}}),
        Ask("POST", f"{PODS}?dryRun=All", pod("known", nodeName="topology"), until=f"'{ZONE}': 'z'"),
        Ask("POST", PODS, pod("named", nodeName="topology", labels={ZONE: "own"})),
        Ask("POST", f"{PODS}?dryRun=All", pod("dry", nodeName="topology")),
        Ask("POST", PODS, pod("nowhere", nodeName="no-such-node", labels={ZONE: "own"})),
    ]
    bindings: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({"kind": "Node", "name": "topology"}, {}),
        ({"kind": "Node", "name": "topology"}, {ZONE: "asked", "other": "asked"}),
        ({"kind": "Node", "name": "no-such-node"}, {ZONE: "asked"}),
        ({"name": "topology"}, {}),
    ]
    for index, (target, asked) in enumerate(bindings):
        for path in (f"pods/bound-{index}/binding", "bindings"):
            name = f"bound-{index}" if path != "bindings" else f"posted-{index}"
            binding = {"metadata": {"name": name, "labels": asked}, "target": target}
            asks += [
                Ask("POST", PODS, pod(name, labels={REGION: "own"})),
                Ask("POST", f"{NAMESPACES}/{{ns}}/{path}", binding),
                Ask("GET", f"{PODS}/{name}"),
            ]
    return Compared("topology", asks)


def nodes() -> Compared:
    key, none = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
    taints: list[list[dict[str, str]]] = [
        [],
        [{"key": key, "effect": "NoExecute"}],
        [{"key": key, "value": "x", "effect": "NoSchedule"}],
        [{"key": key, "effect": "PreferNoSchedule"}, {"key": none, "effect": "NoSchedule"}],
        [{"key": key}],
    ]
    asks = []
    for index, sent in enumerate(taints):
        name = f"tainted-{index}"
        target = f"/api/v1/nodes/{name}"
        asks += [
            Ask("POST", "/api/v1/nodes", {"metadata": {"name": name}, "spec": {"taints": sent}}),
            Ask("PATCH", target, {"spec": {"taints": None}}, MERGE),
            Ask("PUT", target, {"metadata": {"name": name}}),
            Ask("DELETE", target),
        ]
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    asks.append(Ask("POST", "/api/v1/nodes", {"metadata": {"name": "ready"}, "status": status}))
    return Compared("nodes", asks)


def requests(cpu: str, memory: str = "100Mi", **more: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory, **more}}


def container(resources: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i:1", "resources": resources, **more}


def resized() -> Compared:
    """Each row: the pod, its node, and what is asked for."""
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    two = {"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}}
    sidecar = {"name": "i", "image": "i:1", "restartPolicy": "Always", "resources": requests("1")}
    first = {"name": "i", "image": "i:1", "resources": requests("3")}
    rows: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
        *(
            ({"cpu": "1", "memory": "100Mi"}, "small", requests(cpu))
            for cpu in ("1", "2", "2001m", "2000100u", "3")
        ),
        ({"cpu": "1"}, "small", requests("1", "2Gi")),
        ({"cpu": "1"}, "small", requests("3", "2Gi")),
        ({"cpu": "1"}, "small", requests("1", "1073741824.5")),
        ({"cpu": "3"}, "small", requests("3")),
        ({"cpu": "3"}, "small", requests("2500m")),
        ({"cpu": "3"}, "small", requests("2")),
        *(({"cpu": "1"}, node, requests(cpu)) for node in ("bare", "no-such", "other") for cpu in ("1", "3")),
        (
            {"cpu": "1", "ephemeral-storage": "5Gi"},
            "small",
            requests("1100m", **{"ephemeral-storage": "5Gi"}),
        ),
    ]
    whole: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
        (two, {}, {"containers": [container({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}})]}),
        (requests("3"), {}, {"containers": [container({**requests("3"), "limits": {"cpu": "4"}})]}),
        (requests("3"), {}, {"containers": [container(requests("3"), resizePolicy=policy)]}),
        (requests("1"), {"initContainers": [sidecar]}, {"containers": [container(requests("1500m"))]}),
        (
            requests("1"),
            {"initContainers": [sidecar]},
            {"initContainers": [{"name": "i", "resources": requests("1500m")}]},
        ),
        (requests("1"), {"initContainers": [first]}, {"containers": [container(requests("1500m"))]}),
        (
            requests("1"),
            {"resources": requests("3")},
            {"containers": [container(requests("1500m"))]},
        ),
        (requests("1"), {"resources": requests("2")}, {"resources": requests("3")}),
    ]
    room = {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "10"}}
    labels = {"kubernetes.io/os": "plan9"}
    asks = [
        Ask("POST", "/api/v1/nodes", {"metadata": {"name": "small"}, "status": room}),
        Ask("POST", "/api/v1/nodes", {"metadata": {"name": "bare"}}),
        Ask("POST", "/api/v1/nodes", {"metadata": {"name": "other", "labels": labels}, "status": room}),
        Ask("POST", PODS, pod("known", containers=[container(requests("1"))], nodeName="other")),
        Ask(
            "PATCH",
            f"{PODS}/known/resize?dryRun=All",
            {"spec": {"containers": [container(requests("2"))]}},
            STRATEGIC,
            until="only supported on linux",
        ),
    ]
    tried = [
        *(
            ({"requests": has}, {"nodeName": node}, {"containers": [container(asked)]})
            for has, node, asked in rows
        ),
        *((has, {**more, "nodeName": "small"}, asked) for has, more, asked in whole),
        (requests("1"), {}, {"containers": [container(requests("9"))]}),
        (
            requests("1"),
            {"nodeName": "other"},
            {"containers": [container({**requests("1"), "limits": {"cpu": "2"}})]},
        ),
    ]
    for index, (has, more, asked) in enumerate(tried):
        made = pod(f"p-{index}", containers=[container(has)], **more)
        asks += [
            Ask("POST", PODS, made),
            Ask("PATCH", f"{PODS}/p-{index}/resize", {"spec": asked}, STRATEGIC, f"{has} {more} {asked}"),
        ]
    asks += [
        Ask(
            "PATCH",
            f"{PODS}/p-0/resize?dryRun=All",
            {"spec": {"containers": [container(requests("5"))]}},
            STRATEGIC,
        ),
        Ask("PATCH", f"{PODS}/p-0/resize", {"metadata": {"labels": {"a": "b"}}}, STRATEGIC),
    ]
    return Compared("resized", asks, apart=True)


def pulled() -> Compared:
    containers = [
        {"name": name, "image": "i:1", **({"imagePullPolicy": policy} if policy else {})}
        for name, policy in (("a", ""), ("b", "Never"), ("c", "IfNotPresent"))
    ]
    first = [{"name": "i", "image": "i:1", "imagePullPolicy": "Never"}]
    volumes = [{"name": "v", "image": {"reference": "x:1", "pullPolicy": "Never"}}]
    ephemeral = {"spec": {"ephemeralContainers": [{"name": "e", "image": "j:1", "imagePullPolicy": "Never"}]}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return Compared(
        "pulled",
        [
            Ask("POST", PODS, pod("p", containers=containers, initContainers=first, volumes=volumes)),
            Ask("PATCH", f"{PODS}/p", {"spec": {"containers": [{"name": "b", "image": "k:1"}]}}, STRATEGIC),
            Ask("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}, MERGE),
            Ask("PATCH", f"{PODS}/p/ephemeralcontainers", ephemeral, STRATEGIC),
            Ask("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "c"}}}, MERGE),
            Ask(
                "POST", "/apis/apps/v1/namespaces/{ns}/deployments", {"metadata": {"name": "d"}, "spec": spec}
            ),
        ],
    )


def addresses() -> Compared:
    def service(name: str, **spec: Any) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"ports": [{"port": 1}], **spec}}

    return Compared(
        "addresses",
        [
            Ask("POST", SERVICES, service("a", externalIPs=["1.2.3.4"])),
            Ask("POST", SERVICES, service("a", externalIPs=["x"])),
            Ask("POST", SERVICES, service("b")),
            *(
                Ask("PATCH", f"{SERVICES}/b", {"spec": {"externalIPs": value}}, MERGE)
                for value in (["1.2.3.4"], [], None)
            ),
        ],
    )


def provided() -> Compared:
    one = {"metadata": {"name": "c"}}
    asks = [
        Ask("POST", f"{NAMESPACES}/made/configmaps?dryRun=All", one),
        Ask("GET", f"{NAMESPACES}/made"),
        Ask("POST", f"{NAMESPACES}/made/configmaps", one),
        Ask("GET", f"{NAMESPACES}/made"),
        Ask("PUT", f"{NAMESPACES}/made-0/configmaps/c", one),
        Ask("GET", f"{NAMESPACES}/made-0"),
        Ask("POST", f"{NAMESPACES}/Bad_Name/configmaps", one),
        Ask("POST", f"{NAMESPACES}/made-1/configmaps", {"metadata": {"name": "Bad_"}}),
        Ask("GET", f"{NAMESPACES}/made-1"),
        Ask("POST", f"{NAMESPACES}/made-2/pods/x/eviction", {"metadata": {"name": "x"}}),
        Ask("POST", f"{NAMESPACES}/made-3/serviceaccounts/x/token", {"spec": {}}),
        *(Ask("GET", f"{NAMESPACES}/made-{number}") for number in (2, 3)),
        Ask("DELETE", f"{NAMESPACES}/never/configmaps/c"),
        Ask("DELETE", f"{NAMESPACES}/never/configmaps"),
        Ask("POST", NAMESPACES, {"metadata": {"name": "made-5"}}),
        Ask("POST", "/api/v1/nodes", {"metadata": {"name": "made"}}),
    ]
    return Compared("provided", asks, apart=True)


def apart_from() -> Compared:
    def terms(*keys: str) -> dict[str, Any]:
        return {"podAntiAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": {}} for key in keys]}}

    soft = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}
    tried: list[dict[str, Any]] = [
        terms("kubernetes.io/hostname"),
        terms("kubernetes.io/hostname", "zone", "y"),
        terms("bad key"),
        terms(),
        {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [soft]}},
        {"podAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}},
    ]
    return Compared("apart", [Ask("POST", PODS, pod(f"p-{n}", affinity=one)) for n, one in enumerate(tried)])


def tolerating() -> Compared:
    asked = {"limits": {"example.com/b": "1", "cpu": "1", "example.com/a": "2"}}
    first = [{"name": "i", "image": "i:1", "resources": asked}]
    none = {"limits": {"example.com/z": "0"}}
    a, b = ({"key": f"example.com/{name}", "operator": "Exists"} for name in "ab")
    held = [{**a, "effect": "NoExecute"}, {**b, "effect": "NoSchedule"}, {**b, "tolerationSeconds": 5}]
    return Compared(
        "tolerating",
        [
            Ask("POST", PODS, pod("a", containers=[container(asked)])),
            Ask("POST", PODS, pod("b", containers=[container(asked)], tolerations=held[:2])),
            Ask("POST", PODS, pod("c", containers=[container(none)], initContainers=first)),
            Ask("PATCH", f"{PODS}/a", {"metadata": {"labels": {"a": "b"}}}, MERGE),
            Ask("POST", PODS, pod("d", containers=[container(asked)], tolerations=[{"operator": "Exists"}])),
        ],
    )


def selected() -> Compared:
    """A namespace for each selector: Kubernetes is not told of a changed one at once."""
    asks = []
    texts = ("a=b, c=d", "a in (b)", "", "=", "a==b", "a=b,a=c", "a!=b", ",", "a=b=c", " ", "a", "a=", "a=-")
    for index, text in enumerate(texts):
        name = f"{{ns}}-{index}"
        metadata = {"name": name, "annotations": {SELECTOR: text}}
        pods = f"{NAMESPACES}/{name}/pods"
        asks += [
            Ask("POST", NAMESPACES, {"metadata": metadata}),
            Ask("POST", f"{NAMESPACES}/{name}/serviceaccounts", {"metadata": {"name": "default"}}),
            *(
                Ask("POST", pods, pod(f"p-{number}", nodeSelector=own))
                for number, own in enumerate(({}, {"a": "x"}, {"a": "b", "e": "f"}))
            ),
        ]
    changed = f"{NAMESPACES}/{{ns}}-0/pods/p-0"
    asks.append(Ask("PATCH", changed, {"metadata": {"labels": {"a": "b"}}}, MERGE))
    return Compared("selected", asks)


def owned() -> Compared:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}"
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "update", "get", "patch"]},
        {"apiGroups": ["batch"], "resources": ["jobs/finalizers"], "verbs": ["update"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["delete"], "resourceNames": ["may"]},
    ]
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    bound = {
        "roleRef": {**group, "kind": "Role", "name": "r"},
        "subjects": [{**group, "kind": "User", "name": "ann"}],
    }
    maps, ann = "/api/v1/namespaces/{ns}/configmaps", {"Impersonate_User": "ann"}

    def refs(*owners: tuple[str, str, bool | None]) -> dict[str, Any]:
        return {
            "ownerReferences": [
                {"apiVersion": version, "kind": kind, "name": "o", "uid": f"u{index}"}
                | ({} if blocks is None else {"blockOwnerDeletion": blocks})
                for index, (version, kind, blocks) in enumerate(owners)
            ]
        }

    made: dict[str, list[tuple[str, str, bool | None]]] = {
        "free": [],
        "may": [("v1", "Pod", None)],
        "blocks": [("v1", "Pod", True)],
        "allowed": [("batch/v1", "Job", True)],
        "unknown": [("nope.example.com/v1", "Job", True)],
        "node": [("v1", "Node", True), ("v1", "Pod", True)],
        "second": [("batch/v1", "Job", True), ("v1", "Pod", True)],
        "not": [("v1", "Pod", False)],
    }
    changes: list[list[tuple[str, str, bool | None]]] = [
        [("v1", "Pod", None)],
        [("v1", "Pod", True)],
        [("batch/v1", "Job", True)],
        [("v1", "Pod", False)],
        [],
    ]
    asks = [
        Ask("POST", f"{roles}/roles", {"metadata": {"name": "r"}, "rules": rules}),
        Ask("POST", f"{roles}/rolebindings", {"metadata": {"name": "r"}, **bound}),
        Ask("POST", f"{maps}?dryRun=All", {"metadata": {"name": "free"}}, ann, until=201),
        *(Ask("POST", maps, {"metadata": {"name": name, **refs(*them)}}, ann) for name, them in made.items()),
        Ask("POST", maps, {"metadata": {"name": "admins", **refs(("v1", "Pod", True))}}),
        *(
            Ask("PATCH", f"{maps}/{name}", {"metadata": change}, {**ann, **MERGE})
            for name in ("free", "may", "admins")
            for change in ({"labels": {"a": "b"}}, *(refs(*them) for them in changes))
        ),
    ]
    return Compared("owned", asks, apart=True)


def held() -> Compared:
    """What the configuration lets the pods of each namespace select."""
    asks = []
    for index in range(5):
        name = f"held-{index}"
        pods = f"{NAMESPACES}/{name}/pods"
        asks += [
            Ask("POST", NAMESPACES, {"metadata": {"name": name}}),
            Ask("POST", f"{NAMESPACES}/{name}/serviceaccounts", {"metadata": {"name": "default"}}),
            *(
                Ask("POST", pods, pod(f"p-{number}", nodeSelector=own))
                for number, own in enumerate(({}, {"a": "b"}, {"every": "x"}, {"e": "f"}, {"c": "d"}))
            ),
        ]
    return Compared("held", asks, apart=True)


def tolerated() -> Compared:
    """A namespace for each pair of annotations: Kubernetes is not told of a changed one at once."""
    default, whitelist = (
        f"scheduler.alpha.kubernetes.io/{one}" for one in ("defaultTolerations", "tolerationsWhitelist")
    )
    spaces: list[dict[str, str]] = [
        {},
        {default: '[{"key":"a","operator":"Exists"}]', whitelist: ""},
        {default: '[{"key":"a","operator":"Exists"}]', whitelist: '[{"key":"a","operator":"Exists"}]'},
        {default: "[]", whitelist: '[{"operator":"Exists"}]'},
        {default: "", whitelist: "[]"},
        {default: "{", whitelist: '[{"operator":"Exists"}]'},
        {default: '[{"key":"x","effect":"NoExecute","tolerationSeconds":5}]', whitelist: "[]"},
        {whitelist: "nothing"},
        {default: '[{"key":1}]', whitelist: "[]"},
        {default: '[{"key":"a","value":"b","nope":1}]', whitelist: "[]"},
    ]
    exists = {"operator": "Exists"}
    own: list[list[dict[str, Any]]] = [
        [],
        [{"key": "held", "operator": "Equal", "value": "x", "effect": "NoExecute", "tolerationSeconds": 5}],
        [{"key": "held", "operator": "Equal", "value": "x", "effect": "NoExecute", "tolerationSeconds": 15}],
        [{"key": "held", "operator": "Equal", "value": "x", "effect": "NoExecute"}],
        [{"key": "held", "value": "y"}],
        [{"key": "a", **exists}, {"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "a", **exists}],
        [{"key": "a", "operator": "Equal", "value": "b"}, {"key": "a", "value": "b"}],
        [exists, {"key": "usual", "value": "v"}],
        [{"key": "usual", "operator": "Exists", "effect": "NoSchedule"}],
        [{"key": "usual", "operator": "Lt", "value": "3"}],
        [{"key": "x", "effect": "NoExecute", "tolerationSeconds": 7}],
    ]
    asks = []
    for index, said in enumerate(spaces):
        name = f"{{ns}}-{index}"
        pods = f"{NAMESPACES}/{name}/pods"
        metadata = {"name": name, "annotations": said}
        asks += [
            Ask("POST", NAMESPACES, {"metadata": metadata}),
            Ask("POST", f"{NAMESPACES}/{name}/serviceaccounts", {"metadata": {"name": "default"}}),
            *(Ask("POST", pods, pod(f"p-{number}", tolerations=one)) for number, one in enumerate(own)),
            Ask("POST", pods, pod("burstable", containers=[container(requests("1"))])),
            Ask("PATCH", f"{pods}/p-0", {"metadata": {"labels": {"a": "b"}}}, MERGE),
            Ask("PATCH", f"{pods}/p-0", {"spec": {"tolerations": own[5]}}, STRATEGIC),
            Ask("PATCH", f"{pods}/p-0/status", {"status": {"reason": "x"}}, MERGE),
        ]
    return Compared("tolerated", asks, apart=True)


def configured() -> Compared:
    asks = []
    policies: list[dict[str, str]] = [
        {},
        {"enforce": "privileged"},
        {"enforce": "baseline", "enforce-version": "v1.20"},
        {"enforce": "restricted", "warn": "privileged"},
        {"enforce": "privileged", "audit": "privileged", "warn": "privileged"},
    ]
    asks.append(
        Ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "exempt"}, "handler": "x"})
    )
    template = {"metadata": {"labels": {"a": "b"}}, "spec": privileged("p")["spec"]}
    deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    names = ["exempt", *(f"configured-{index}" for index in range(len(policies)))]
    for name, policy in zip(names, ({"enforce": "baseline"}, *policies), strict=True):
        labels = {PREFIX + mode: value for mode, value in policy.items()}
        target = f"{NAMESPACES}/{name}"
        alice = {"Impersonate_User": "alice", "Impersonate_Group": "system:masters"}
        asks += [
            Ask("POST", NAMESPACES, {"metadata": {"name": name, "labels": labels}}),
            Ask("POST", f"{target}/serviceaccounts", {"metadata": {"name": "default"}}),
            Ask("POST", f"{target}/pods?dryRun=All", privileged("p")),
            Ask("POST", f"{target}/pods?dryRun=All", privileged("p", runtimeClassName="exempt")),
            Ask("POST", f"{target}/pods", privileged("alices"), alice),
            Ask("POST", f"{target}/pods", privileged("exempt", runtimeClassName="exempt")),
            Ask(
                "POST",
                f"/apis/apps/v1/namespaces/{name}/deployments",
                {"metadata": {"name": "w"}, "spec": deployment},
            ),
            *(
                Ask("PATCH", target, {"metadata": {"labels": {PREFIX + mode: level}}}, MERGE)
                for mode, level in (("warn", "baseline"), ("enforce", "restricted"), ("enforce", "baseline"))
            ),
            Ask("PATCH", target, {"metadata": {"labels": {f"{PREFIX}warn": "x"}}}, MERGE),
        ]
    return Compared("configured", asks)


@pytest.fixture(scope="module")
def chosen(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    """Both servers with the plugins that are off by default, and a configuration."""
    theirs, ours = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    flags = [*CHOSEN, f"--admission-control-config-file={ours / 'admission.yaml'}"]
    (ours / "admission.yaml").write_text(CONFIGURATION)
    (ours / "tolerations.yaml").write_text(TOLERATIONS)
    with (
        control_plane.kubernetes(kubernetes_programs, theirs, *flags) as kubernetes,
        control_plane.podling(ours, *flags) as podling,
    ):
        yield kubernetes, podling


@pytest.mark.parametrize("compared", [topology(), mountable(), nodes(), resized()], ids=lambda one: one.name)
def test_what_is_usual(compared: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(compared, f"usual-{compared.name}", kubernetes, podling))
    assert not found, shown(compared, found)


@pytest.mark.parametrize(
    "compared",
    [
        *(pulled(), addresses(), configured(), provided(), apart_from(), tolerating(), selected(), owned()),
        *(held(), tolerated()),
    ],
    ids=lambda one: one.name,
)
def test_what_is_chosen(compared: Compared, chosen: tuple[Server, Server]) -> None:
    found = unnamed(differences(compared, f"chosen-{compared.name}", *chosen))
    assert not found, shown(compared, found)


BURST = 3
"""Of each source and object; one more each second."""
FIRST: Any = {"involvedObject": {"kind": "Pod", "namespace": "limited", "name": "p"}}
NEWER = {
    "regarding": {"kind": "Pod", "namespace": "limited", "name": "q"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "a/b",
    "reportingInstance": "c",
    "action": "x",
    "reason": "y",
    "type": "Normal",
}
EVENTS = f"{NAMESPACES}/limited/events"
SENT = {"a": FIRST, "b": {**FIRST, "source": {"component": "c"}}}


def refusals(server: Server) -> list[Any]:
    """What is answered to the first event of each kind that is one too many, and to a change, which counts as
    one. Before it all are taken that the burst allows, and none that the time does not."""
    assert server.ask("POST", NAMESPACES, {"metadata": {"name": "limited"}}).code == 201
    found = []
    with server.asking() as asking:

        def until_refused(ask: Callable[[int], Answer]) -> int:
            begun = time.monotonic()
            for number in itertools.count():
                answer = ask(number)
                if answer.code == 429:
                    found.append((answer.body, answer.headers.get("Retry-After")))
                    assert number <= BURST + (time.monotonic() - begun)
                    return number
                assert answer.code in (200, 201)
            raise AssertionError

        def create(target: str, name: str, body: Any) -> Answer:
            named = {"metadata": {"name": name, "namespace": "limited"}}
            return asking.ask("POST", target, {**named, **body})

        for name, body in SENT.items():

            def send(number: int, name: str = name, body: Any = body) -> Answer:
                return create(EVENTS, f"{name}-{number}", body)

            assert until_refused(send) >= BURST

        def change(number: int) -> Answer:
            return asking.ask("PATCH", f"{EVENTS}/a-0", {"message": f"{number}"}, Content_Type=MERGE_PATCH)

        until_refused(change)
        assert asking.ask("DELETE", f"{EVENTS}/a-0").code == 200, "what goes does not count"
        newer = "/apis/events.k8s.io/v1/namespaces/limited/events"
        assert {create(newer, f"n-{number}", NEWER).code for number in range(20)} == {201}, "nor do these"
    return found


def test_events_are_limited_alike(chosen: tuple[Server, Server]) -> None:
    theirs, ours = map(refusals, chosen)
    assert ours == theirs


def test_everything_is_denied(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Kubernetes' server needs what an earlier one has made."""
    flag = "--enable-admission-plugins=AlwaysDeny,AlwaysAdmit"
    one = {"metadata": {"name": "default"}}
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    asks = [
        Ask("POST", NAMESPACES, {"metadata": {"name": "a"}}),
        Ask("POST", f"{NAMESPACES}/default/configmaps", {"metadata": {"generateName": "g-"}}),
        Ask("POST", f"{NAMESPACES}/default/configmaps", {"metadata": {"name": "Bad_"}}),
        Ask("PUT", f"{NAMESPACES}/default", one),
        Ask("DELETE", f"{NAMESPACES}/default/configmaps"),
        Ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review),
        Ask("POST", "/apis/authorization.k8s.io/v1/namespaces/x/localsubjectaccessreviews", {"spec": {}}),
        Ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
        Ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
        Ask("GET", f"{NAMESPACES}/default/pods/p/exec?command=x"),
        Ask("GET", "/api/v1/nodes/n/proxy/x"),
    ]
    compared = Compared("denied", asks, apart=True)
    theirs, ours = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    with control_plane.kubernetes(kubernetes_programs, theirs), control_plane.podling(ours):
        pass
    with (
        control_plane.kubernetes(kubernetes_programs, theirs, flag, ready="/livez/ping") as kubernetes,
        control_plane.podling(ours, flag, ready="/livez/ping") as podling,
    ):
        found = unnamed(differences(compared, "denied", kubernetes, podling))
    assert not found, shown(compared, found)
