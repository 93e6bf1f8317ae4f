"""R-SYS-8: what pods and ingresses get from their classes, and what is refused, as in Kubernetes.

Kubernetes' admission learns of a class a moment after it is made: what depends on it is first asked for until
it does.
"""

from __future__ import annotations

from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses"
INGRESS_CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"
DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"
PODS, DRY = "/api/v1/namespaces/{ns}/pods", "?dryRun=All"
MERGE = {"Content_Type": MERGE_PATCH}
SYSTEM = ("system-cluster-critical", "system-node-critical")


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}


def priority(name: str, **fields: Any) -> Ask:
    return Ask("POST", PRIORITIES, {"metadata": {"name": name}, **fields})


def tried(**spec: Any) -> Ask:
    return Ask("POST", f"{PODS}{DRY}", pod(**spec), what=str(spec))


def priorities() -> list[Ask]:
    spoken: list[dict[str, Any]] = [
        {},
        {"priorityClassName": ""},
        {"priorityClassName": "nobody"},
        {"priorityClassName": "Bad_"},
        {"priorityClassName": "high"},
        {"priorityClassName": "never"},
        {"priorityClassName": "lowest"},
        {"priorityClassName": "high", "priority": 1000},
        {"priorityClassName": "high", "priority": 999},
        {"priorityClassName": "high", "priority": 0},
        {"priority": 0},
        {"priority": 5},
        {"priorityClassName": "high", "preemptionPolicy": "Never"},
        {"priorityClassName": "never", "preemptionPolicy": "Never"},
        {"priorityClassName": "never", "preemptionPolicy": "PreemptLowerPriority"},
        {"priorityClassName": "never", "preemptionPolicy": ""},
        {"preemptionPolicy": "Never"},
        {"preemptionPolicy": "Odd"},
        *({"priorityClassName": name} for name in SYSTEM),
        {"priorityClassName": SYSTEM[0], "priority": 2_000_000_000},
        {"priorityClassName": SYSTEM[0], "preemptionPolicy": "Never", "priority": 1},
    ]
    changes: list[dict[str, Any]] = [
        {"priorityClassName": "never"},
        {"priority": 7},
        {"priority": None},
        {"priorityClassName": None},
        {"preemptionPolicy": "Never"},
        {"preemptionPolicy": None},
        {"activeDeadlineSeconds": 9, "priority": None, "preemptionPolicy": None},
    ]
    return [
        priority("high", value=1000),
        priority("lowest", value=-2_147_483_648, description="of all"),
        priority("never", value=10, preemptionPolicy="Never"),
        Ask("POST", f"{PODS}{DRY}", pod(priorityClassName="never"), until=201),
        *(tried(**one) for one in spoken),
        Ask("POST", PODS, pod("kept", priorityClassName="high")),
        *(Ask("PATCH", f"{PODS}/kept{DRY}", {"spec": one}, MERGE, str(one)) for one in changes),
        Ask("PUT", f"{PODS}/kept{DRY}", pod("kept")),
        Ask("PUT", f"{PODS}/kept{DRY}", pod("kept", priorityClassName="high")),
        Ask("PUT", f"{PODS}/kept{DRY}", pod("kept", priorityClassName="high", priority=1000)),
        # One for all that name none.
        priority("usual", value=77, globalDefault=True, preemptionPolicy="Never"),
        Ask("POST", f"{PODS}{DRY}", pod(), until="'usual'"),
        tried(priority=0),
        tried(priority=77),
        tried(preemptionPolicy="PreemptLowerPriority"),
        tried(priorityClassName="high"),
        priority("another", value=1, globalDefault=True),
        priority("usual", value=1, globalDefault=True),
        Ask("PATCH", f"{PRIORITIES}/high", {"globalDefault": True}, MERGE),
        Ask("PATCH", f"{PRIORITIES}/usual", {"globalDefault": True, "description": "x"}, MERGE),
        Ask("PATCH", f"{PRIORITIES}/usual", {"value": 78}, MERGE),
        Ask("PATCH", f"{PRIORITIES}/usual", {"preemptionPolicy": None}, MERGE),
        Ask("PATCH", f"{PRIORITIES}/usual", {"globalDefault": False}, MERGE),
        Ask("POST", f"{PODS}{DRY}", pod(), until="'priority': 0"),
        *(Ask("DELETE", f"{PRIORITIES}/{name}") for name in ("usual", "high", "lowest", "never")),
        Ask("POST", f"{PODS}{DRY}", pod(priorityClassName="never"), until=403),
        tried(priorityClassName="high"),
        Ask("PUT", f"{PODS}/kept{DRY}", pod("kept", priorityClassName="high")),
        *(Ask("DELETE", f"{PRIORITIES}/{name}") for name in (*SYSTEM, "system-other")),
        *(Ask("DELETE", f"{PRIORITIES}/{name}{DRY}") for name in SYSTEM),
        Ask("DELETE", f"{PRIORITIES}?fieldSelector=metadata.name={SYSTEM[0]}"),
        *(priority(name, value=1) for name in (*SYSTEM, "system-other")),
        *(Ask("PATCH", f"{PRIORITIES}/{name}{DRY}", {"description": "x"}, MERGE) for name in SYSTEM),
        priority("much", value=1_000_000_001),
        priority("most", value=1_000_000_000),
        priority("odd", value=1, preemptionPolicy="Odd"),
        Ask("DELETE", f"{PRIORITIES}/most"),
    ]


def runtimes() -> list[Ask]:
    tolerations = [
        {"key": "a", "operator": "Exists"},
        {"key": "b", "operator": "Equal", "value": "c", "effect": "NoExecute", "tolerationSeconds": 3},
    ]
    scheduling = {"nodeSelector": {"kind": "fast", "zone": "z"}, "tolerations": tolerations}
    overhead = {"podFixed": {"cpu": "250m", "memory": "120Mi"}}
    made: dict[str, dict[str, Any]] = {
        "plain": {},
        "heavy": {"overhead": overhead},
        "light": {"overhead": {}},
        "placed": {"scheduling": scheduling},
        "empty": {"scheduling": {}},
        "all": {"overhead": overhead, "scheduling": scheduling},
    }
    spoken: list[dict[str, Any]] = [
        *({"runtimeClassName": name} for name in (*made, "nobody", "", "Bad_")),
        *(
            {"runtimeClassName": name, "overhead": own}
            for name in ("plain", "heavy", "light", "nobody")
            for own in ({}, overhead["podFixed"], {"cpu": "0.25", "memory": "120Mi"}, {"cpu": "1"})
        ),
        {"overhead": {}},
        {"overhead": {"cpu": "1"}},
        {"overhead": {"odd/x_": "1.5"}},
        *(
            {"runtimeClassName": name, "nodeSelector": own}
            for name in ("placed", "empty")
            for own in ({}, {"kind": "fast"}, {"kind": "slow"}, {"kind": "slow", "zone": "y"}, {"own": "o"})
        ),
        *(
            {"runtimeClassName": "placed", "tolerations": own}
            for own in (
                [],
                tolerations[:1],
                tolerations[::-1],
                [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
                [{"operator": "Exists"}],
                [{"key": "b", "value": "c", "effect": "NoExecute", "tolerationSeconds": 3}],
            )
        ),
    ]
    return [
        *(
            Ask("POST", RUNTIMES, {"metadata": {"name": name}, "handler": "h", **fields})
            for name, fields in made.items()
        ),
        Ask("POST", f"{PODS}{DRY}", pod(runtimeClassName="all"), until=201),
        *(tried(**one) for one in spoken),
        Ask("POST", PODS, pod("kept", runtimeClassName="all")),
        Ask("PATCH", f"{PODS}/kept{DRY}", {"spec": {"overhead": None}}, MERGE),
        Ask("PATCH", f"{PODS}/kept{DRY}", {"spec": {"overhead": {"cpu": "1"}}}, MERGE),
        Ask("PATCH", f"{PODS}/kept{DRY}", {"spec": {"runtimeClassName": "plain"}}, MERGE),
        Ask("PATCH", f"{PODS}/kept{DRY}", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        *(Ask("DELETE", f"{RUNTIMES}/{name}") for name in made),
    ]


def ingresses() -> list[Ask]:
    def a_class(name: str, default: str) -> Ask:
        meta = {"name": name, "annotations": {DEFAULT_INGRESS: default}}
        return Ask("POST", INGRESS_CLASSES, {"metadata": meta, "spec": {"controller": "a.test/b"}})

    def ingress(name: str = "i", annotations: Any = None, **spec: Any) -> dict[str, Any]:
        backend = {"service": {"name": "s", "port": {"number": 1}}}
        return {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"defaultBackend": backend, **spec},
        }

    def asked(*sent: dict[str, Any]) -> list[Ask]:
        return [Ask("POST", f"{INGRESSES}{DRY}", one) for one in sent]

    old = {"kubernetes.io/ingress.class": "x"}
    each = asked(
        ingress(),
        ingress(ingressClassName="named"),
        ingress(ingressClassName=""),
        ingress(annotations=old),
        ingress(annotations={"kubernetes.io/ingress.class": ""}),
        ingress(annotations=old, ingressClassName="named"),
    )
    return [
        *each,
        a_class("not", "yes"),
        a_class("one", "true"),
        Ask("POST", f"{INGRESSES}{DRY}", ingress(), until="'one'"),
        *each,
        Ask("POST", INGRESSES, ingress("kept")),
        Ask("PUT", f"{INGRESSES}/kept{DRY}", ingress("kept")),
        Ask("PATCH", f"{INGRESSES}/kept{DRY}", {"spec": {"ingressClassName": None}}, MERGE),
        *(Ask("DELETE", f"{INGRESS_CLASSES}/{name}") for name in ("not", "one")),
        Ask("POST", f"{INGRESSES}{DRY}", ingress(ingressClassName=None, annotations=None), until=201),
    ]


SEQUENCES = [
    Compared("priorities", priorities(), apart=True),
    Compared("runtimes", runtimes(), apart=True),
    Compared("ingresses", ingresses(), apart=True),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_classes(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"classes-{sequence.name}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
