"""The resize subresource. What it refuses is in `pod_tables/changes/resize.yaml`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podling.apiserver.kinds.pods.pods import Pods
from podling.apiserver.kinds.pods.resize import Resize
from podling.model.gates import Gates
from podling.model.types.pod import Pod

MakePod = Callable[..., Pod]


def app(cpu: str, **fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "app", "image": "a", "resources": {"requests": {"cpu": cpu}}, **fields}]}


def test_all_but_resources_is_discarded(make_pod: MakePod) -> None:
    new = make_pod(
        metadata={"labels": {"a": "b"}},
        status={"phase": "Failed"},
        nodeName="elsewhere",
        **app("2", image="other", command=["x"]),
    )
    old = make_pod(nodeName="here", status={"phase": "Running"}, **app("1"))
    Resize().prepare_update(new, old)
    (container,) = new.spec.containers
    assert (container.image, container.command, str(container.resources.requests["cpu"])) == ("a", [], "2")
    assert (new.metadata.labels, new.status.phase, new.spec.node_name) == ({}, "Running", "here")


def test_what_stands_is_not_touched(make_pod: MakePod) -> None:
    old = make_pod(**app("1"))
    new = make_pod(**app("2"))
    Resize().prepare_update(new, old)
    assert str(old.spec.containers[0].resources.requests["cpu"]) == "1"


def test_it_is_not_served_with_its_gate_off() -> None:
    assert "resize" in Pods().subresources
    assert "resize" not in Pods(Gates({"InPlacePodVerticalScaling": False})).subresources
