"""R-SYS-3: what a pod needs of its node that older nodes have not."""

from __future__ import annotations

from typing import Any

import pytest

from podling.model.codec.json import from_data
from podling.model.rules.placement import (
    RESIZE_INIT,
    RESIZE_POD,
    RESTART_ALL,
    needed_to_change,
    needed_to_run,
)
from podling.model.types.pod import PodSpec


def spec(**fields: Any) -> PodSpec:
    return from_data({"containers": [{"name": "c"}], **fields}, PodSpec)


def ruled(action: str) -> list[dict[str, Any]]:
    return [{"name": "a", "restartPolicyRules": [{"action": action}]}]


@pytest.mark.parametrize(
    ("fields", "needed"),
    [
        ({}, set()),
        ({"containers": ruled("Restart")}, set()),
        ({"containers": ruled("RestartAllContainers")}, {RESTART_ALL}),
        ({"initContainers": ruled("RestartAllContainers")}, {RESTART_ALL}),
    ],
)
def test_to_run(fields: dict[str, Any], needed: set[str]) -> None:
    assert needed_to_run(spec(**fields)) == needed


def asking(cpu: str, **fields: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **fields}


def init(cpu: str, **fields: Any) -> dict[str, Any]:
    return {"initContainers": [asking(cpu, name="i", **fields)]}


@pytest.mark.parametrize(
    ("before", "after", "needed"),
    [
        ({}, {}, set()),
        ({"containers": [asking("1", name="c")]}, {"containers": [asking("2", name="c")]}, set()),
        (asking("1"), asking("1000m"), set()),
        (asking("1"), asking("2"), {RESIZE_POD}),
        ({}, asking("2"), {RESIZE_POD}),
        (init("1"), init("2"), {RESIZE_INIT}),
        (init("1", restartPolicy="Always"), init("2", restartPolicy="Always"), set()),
        ({**asking("1"), **init("1")}, {**asking("2"), **init("2")}, {RESIZE_POD, RESIZE_INIT}),
    ],
)
def test_to_change(before: dict[str, Any], after: dict[str, Any], needed: set[str]) -> None:
    assert needed_to_change(spec(**after), spec(**before)) == needed
