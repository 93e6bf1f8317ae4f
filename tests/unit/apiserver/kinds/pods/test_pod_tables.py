"""What is wrong with a pod, what may change of it, what is warned of: one line a manifest, in `pod_tables/`.

    manifests/  [change to the base pod, faults ...]; a field that begins with a dot is below the place
    changes/    [what was, what is sent, faults ...], a file an endpoint
    warnings    [change to the base pod, warnings ...]

Words in angle brackets are sentences of `words.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.kinds.pods.pods import Pods, PodTemplates
from podling.apiserver.patch.parse import merge_patch
from podling.model.codec.json import from_data, to_data
from podling.model.errors import Cause
from podling.model.gates import Gates
from podling.model.types.pod import Pod, PodTemplate

TABLES = Path(__file__).parent / "pod_tables"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
STORED = {"metadata": {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}}
ONE_CONTAINER = {"spec": {"containers": [{"name": "a", "image": "a"}]}}


def load(name: str) -> Any:
    return yaml.load((TABLES / name).read_text(), yaml.CSafeLoader)


BASE, WORDS = load("base_pod.yaml"), load("words.yaml")


def spoken(line: str) -> str:
    return re.sub("<([a-z ]+)>", lambda word: WORDS.get(word[1], word[0]), line)


def container(list_: str, **fields: Any) -> Any:
    def put(change: dict[str, Any]) -> dict[str, Any]:
        return {"spec": {list_: [merge_patch({"image": "busybox", **fields}, change)]}}

    return put


PLACES: dict[str, tuple[str, Any]] = {
    "app": ("spec.containers[0]", container("containers", name="app")),
    "init": ("spec.initContainers[0]", container("initContainers", name="init")),
    "sidecar": (
        "spec.initContainers[0]",
        container("initContainers", name="sidecar", restartPolicy="Always"),
    ),
    "debug": ("spec.ephemeralContainers[0]", container("ephemeralContainers", name="debug")),
    "volume": ("spec.volumes[0]", lambda change: {"spec": {"volumes": [{"name": "w", **change}]}}),
    "pod": ("spec", lambda change: {"spec": change}),
    "metadata": ("metadata", lambda change: {"metadata": change}),
    "create": ("", lambda change: change),
    "template": ("template", lambda change: change),
}
"""Where the change of a line goes: the field that its faults are below, and how it gets there."""


ALL_FIELDS = Gates({"ContainerStopSignals": True})


MANIFESTS = sorted((TABLES / "manifests").glob("*.yaml"))
ENDPOINTS = sorted((TABLES / "changes").glob("*.yaml"))


def manifests(file: Path) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """Place, change, faults of each line."""
    for section in load(f"manifests/{file.name}"):
        for change, *faults in section["cases"]:
            yield section["place"], change, faults


def make(change: dict[str, Any], *more: dict[str, Any]) -> Pod:
    data = BASE
    for one in (*more, change):
        data = merge_patch(data, one)
    pod = from_data(data, Pod)
    Pods().default(pod)
    return pod


def told(causes: list[Cause]) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in causes]


def judged(place: str, change: dict[str, Any]) -> list[Cause]:
    if place == "template":
        template = merge_patch(ONE_CONTAINER, change)
        of_template = from_data({"metadata": BASE["metadata"], "template": template}, PodTemplate)
        PodTemplates().default(of_template)
        return PodTemplates().validate(of_template)
    pod = make(PLACES[place][1](change))
    if place == "debug":
        return Pods().validate(pod)
    pods = Pods(ALL_FIELDS)
    pods.prepare_create(pod, NOW)
    return pods.validate_create(pod)


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_manifests(file: Path) -> None:
    """R-INIT-6, R-INIT-8, R-EPH-2"""
    answers, expected = {}, {}
    for number, (place, change, faults) in enumerate(manifests(file), 1):
        field = PLACES[place][0]
        answers[place, number] = told(judged(place, change))
        expected[place, number] = [
            f"{field}{fault}" if fault.startswith(".") else fault for fault in map(spoken, faults)
        ]
    assert answers == expected


@pytest.mark.parametrize("file", ENDPOINTS, ids=lambda file: file.stem)
def test_changes(file: Path) -> None:
    """R-INIT-5, R-EPH-1, R-EPH-2"""
    answers, expected = {}, {}
    for number, (before, after, *faults) in enumerate(load(f"changes/{file.name}"), 1):
        pods, old, new = Pods(), make(before, STORED), make(after, STORED)
        rules: Any = pods if file.stem == "update" else pods.subresources[file.stem]
        rules.prepare_update(new, old)
        causes = pods.validate(new) if file.stem == "update" else []
        answers[number] = told(causes + rules.validate_update(new, old))
        expected[number] = [spoken(fault) for fault in faults]
    assert answers == expected


def test_warnings() -> None:
    answers, expected = {}, {}
    for number, (change, *warnings) in enumerate(load("warnings.yaml"), 1):
        pod = make(change)
        Pods().prepare_create(pod, NOW)
        answers[number] = Pods().warnings(pod)
        expected[number] = [spoken(warning) for warning in warnings]
    assert answers == expected


def test_templates_are_warned_of_below_their_own_path() -> None:
    for change, *warnings in load("warnings.yaml"):
        of_pod = make(change)
        template = {"metadata": {"annotations": of_pod.metadata.annotations}, "spec": to_data(of_pod.spec)}
        made = from_data({"metadata": BASE["metadata"], "template": template}, PodTemplate)
        expected = [
            f"template.{spoken(warning)}".replace(" with spec.", " with template.spec.")
            for warning in warnings
            if not warning.startswith("metadata.name")
        ]
        assert PodTemplates().warnings(made) == expected


CHANGES = [
    (place, change) for file in MANIFESTS for place, change, _ in manifests(file) if place != "template"
]


@given(st.lists(st.sampled_from(CHANGES), max_size=4))
def test_whatever_comes_together_is_judged(lines: list[tuple[str, dict[str, Any]]]) -> None:
    """And what is not refused may stay as it is, through every endpoint that writes it."""
    pod = make({}, *(PLACES[place][1](change) for place, change in lines), STORED)
    Pods().prepare_create(pod, NOW)
    Pods().warnings(pod)
    if Pods().validate_create(pod):
        return
    same = from_data(to_data(pod), Pod)
    Pods().default(same)
    assert told(Pods().validate_update(same, pod)) == []
    for endpoint in ("status", "resize", "ephemeralcontainers"):
        rules: Any = Pods().subresources[endpoint]
        rules.prepare_update(same, pod)
        windows = pod.spec.os is not None and pod.spec.os.name == "windows"
        mirrored = "kubernetes.io/config.mirror" in pod.metadata.annotations
        # As in Kubernetes: what a container has of claims is no amount, also where it stays as it is.
        claims = endpoint == "resize" and any(
            container.resources.claims for container in (*pod.spec.init_containers, *pod.spec.containers)
        )
        assert told(rules.validate_update(same, pod)) == [] or windows or mirrored or claims
