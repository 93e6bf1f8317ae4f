"""R-SYS-8: what a LimitRange gives to the pods of its namespace, and what it refuses, as in Kubernetes.

Each row has a namespace of its own. Kubernetes learns of a LimitRange a moment later: a pod is first asked
for until it does.
"""

from __future__ import annotations

from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, Found, differences, shown
from peer.server import Server

RANGES, PODS = (f"/api/v1/namespaces/{{ns}}/{plural}" for plural in ("limitranges", "pods"))
DRY = "?dryRun=All"
Amounts = dict[str, str]

RANGES_OF_ROWS: dict[str, list[dict[str, Any]]] = {
    "defaults": [
        {
            "type": "Container",
            "default": {"cpu": "500m", "memory": "200Mi", "example.com/gpu": "2"},
            "defaultRequest": {"cpu": "100m", "ephemeral-storage": "1Gi"},
        }
    ],
    "only requests": [{"type": "Container", "defaultRequest": {"cpu": "300m", "memory": "1Gi"}}],
    "bounds of containers": [
        {
            "type": "Container",
            "min": {"cpu": "100m", "memory": "50Mi"},
            "max": {"cpu": "1", "memory": "1Gi"},
            "maxLimitRequestRatio": {"cpu": "2"},
        }
    ],
    "a most": [{"type": "Container", "max": {"cpu": "1"}}],
    "a least": [{"type": "Container", "min": {"cpu": "100m"}}],
    "huge pages": [{"type": "Container", "min": {"hugepages-2Mi": "4Mi"}}],
    "a ratio": [{"type": "Container", "maxLimitRequestRatio": {"memory": "1500m", "cpu": "3"}}],
    "bounds of pods": [
        {
            "type": "Pod",
            "min": {"cpu": "250m"},
            "max": {"cpu": "1", "memory": "500Mi"},
            "maxLimitRequestRatio": {"cpu": "2"},
        }
    ],
    "both": [
        {"type": "Pod", "max": {"cpu": "2", "memory": "1Gi"}},
        {"type": "Container", "min": {"cpu": "200m"}, "max": {"cpu": "1500m"}, "default": {"cpu": "400m"}},
    ],
    "of others": [
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
        {"type": "example.com/odd", "max": {"cpu": "1"}},
    ],
}


def resources(requests: Amounts | None = None, limits: Amounts | None = None) -> dict[str, Any]:
    return {name: told for name, told in (("requests", requests), ("limits", limits)) if told is not None}


def container(name: str, *amounts: Amounts | None, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i:1", "resources": resources(*amounts), **more}


OF_CONTAINERS: list[tuple[Amounts | None, Amounts | None]] = [
    (None, None),
    ({}, {}),
    ({"cpu": "300m"}, None),
    (None, {"cpu": "300m"}),
    ({"cpu": "300m"}, {"cpu": "900m"}),
    ({"cpu": "50m"}, None),
    ({"cpu": "50m"}, {"cpu": "50m"}),
    ({"cpu": "600m"}, None),
    ({"memory": "300Mi"}, None),
    ({"cpu": "2"}, {"cpu": "2"}),
    (None, {"cpu": "1001m", "memory": "2Gi"}),
    ({"memory": "100Mi"}, {"memory": "150Mi", "cpu": "1"}),
    ({"memory": "100Mi"}, {"memory": "151Mi", "cpu": "1"}),
    ({"cpu": "0", "memory": "0"}, {"cpu": "0"}),
    ({"cpu": "0"}, {"cpu": "100m"}),
    (None, {"example.com/gpu": "1"}),
    (None, {"hugepages-2Mi": "2Mi", "memory": "1Gi", "cpu": "1"}),
    ({"cpu": "100.5m", "memory": "1.5"}, {"cpu": "150.7m"}),
    ({"cpu": "1", "ephemeral-storage": "2Gi"}, {"ephemeral-storage": "3Gi"}),
]
SIDECAR = {"restartPolicy": "Always"}
SPECS: dict[str, dict[str, Any]] = {
    **{f"{one}": {"containers": [container("c", *one)]} for one in OF_CONTAINERS},
    "two": {"containers": [container("a", {"cpu": "600m"}), container("b", None, {"cpu": "700m"})]},
    "two, both wrong": {"containers": [container("a", {"cpu": "9"}), container("b", {"memory": "9Gi"})]},
    "one of two says nothing": {
        "containers": [container("a", {"cpu": "300m"}, {"cpu": "300m"}), container("b")]
    },
    "a large first one": {
        "initContainers": [container("i", {"cpu": "3"}, {"cpu": "3"})],
        "containers": [container("c", {"cpu": "300m"}, {"cpu": "300m"})],
    },
    "first ones": {
        "initContainers": [container("i", {"cpu": "700m"}, {"cpu": "900m"}), container("j")],
        "containers": [container("c", {"cpu": "300m"}, {"cpu": "300m"})],
    },
    "a sidecar": {
        "initContainers": [container("i", {"cpu": "700m"}, {"cpu": "900m"}, **SIDECAR), container("j")],
        "containers": [
            container("c", {"cpu": "400m", "memory": "400Mi"}, {"cpu": "400m", "memory": "600Mi"})
        ],
    },
    "of the pod": {
        "resources": resources({"cpu": "700m"}, {"cpu": "900m"}),
        "containers": [container("c"), container("d", {"cpu": "100m"})],
    },
    "much of the pod": {
        "resources": resources({"cpu": "3", "memory": "2Gi"}, {"cpu": "4", "memory": "2Gi"}),
        "containers": [container("c", {"cpu": "300m"}, {"cpu": "400m"})],
    },
    "limits of the pod": {"resources": resources(None, {"cpu": "900m"}), "containers": [container("c")]},
    "refused anyway": {"containers": [container("c", {"cpu": "2"}, {"cpu": "1"})]},
    "nonsense": {"containers": [container("c", {"cpu": "x"}, {"a_/b": "1"})]},
    "none": {"containers": []},
}


UNTIL: dict[str, int | str] = {
    "defaults": "'example.com/gpu'",
    "only requests": "'memory': '1Gi'",
    "huge pages": 422,
    "of others": 201,
}
"""What is answered once the limits are known, if not a refusal."""


def row(name: str) -> list[Ask]:
    patches: list[tuple[str, str, Any]] = [
        ("", MERGE_PATCH, {"metadata": {"labels": {"a": "b"}}}),
        ("", STRATEGIC_PATCH, {"spec": {"containers": [{"name": "c", "image": "j:1"}]}}),
        *(
            ("/resize", STRATEGIC_PATCH, {"spec": {"containers": [{"name": "c", "resources": said}]}})
            for said in (
                resources({"cpu": "200m"}, {"cpu": "400m"}),
                resources({"cpu": "50m"}, {"cpu": "50m"}),
                resources({"cpu": "400m"}, {"cpu": "2"}),
                resources({"cpu": "350m"}, None),
            )
        ),
        (
            "/ephemeralcontainers",
            STRATEGIC_PATCH,
            {"spec": {"ephemeralContainers": [{"name": "e", "image": "i:1"}]}},
        ),
        ("/status", MERGE_PATCH, {"status": {"reason": "x"}}),
    ]
    made = {
        "metadata": {"name": "old"},
        "spec": {"containers": [container("c", {"cpu": "300m"}, {"cpu": "400m"})]},
    }
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container("c", {"cpu": "9"})]}}
    deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return [
        Ask("POST", PODS, made),
        Ask("POST", RANGES, {"metadata": {"name": "one"}, "spec": {"limits": RANGES_OF_ROWS[name]}}),
        Ask(
            "POST",
            f"{PODS}{DRY}",
            {
                "metadata": {"name": "p"},
                "spec": {"containers": [container("c", {"cpu": "1m"}, {"cpu": "9"})]},
            },
            until=UNTIL.get(name, 403),
        ),
        *(
            Ask("POST", f"{PODS}{DRY}", {"metadata": {"name": "p"}, "spec": spec}, what=name)
            for name, spec in SPECS.items()
        ),
        *(Ask("PATCH", f"{PODS}/old{sub}{DRY}", body, {"Content_Type": kind}) for sub, kind, body in patches),
        Ask("GET", f"{PODS}/old"),
        Ask(
            "POST",
            f"/apis/apps/v1/namespaces/{{ns}}/deployments{DRY}",
            {"metadata": {"name": "d"}, "spec": deployment},
        ),
    ]


def is_of_another_order(one: Found) -> bool:
    """Kubernetes looks at the resources of a limit in the order of one of Go's maps."""
    said = [str(message).partition("forbidden: [") for message in (one.kubernetes, one.podling)]
    (one_begin, _, ones), (other_begin, _, others) = said
    parts = [sorted(told.removesuffix("]").split(", ")) for told in (ones, others)]
    return one.path == "body.message" and one_begin == other_begin and parts[0] == parts[1] != [""]


@pytest.mark.parametrize("name", RANGES_OF_ROWS)
def test_limits(name: str, kubernetes: Server, podling: Server) -> None:
    compared = Compared(name, row(name), apart=True)
    found = unnamed(differences(compared, f"limits-{name.replace(' ', '-')}", kubernetes, podling))
    found = [one for one in found if not is_of_another_order(one)]
    assert not found, f"\n{shown(compared, found)}"
