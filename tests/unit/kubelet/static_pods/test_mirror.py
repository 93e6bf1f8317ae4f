from __future__ import annotations

import pytest

from podling.kubelet.static_pods.static_pods import MirrorStep, mirror_of, next_step
from podling.model.rules.status import is_mirror
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import Node
from podling.model.types.pod import Pod

NODE = Node(metadata=ObjectMeta(name="n1", uid="node-uid"))


def static(hash: str = "h1") -> Pod:
    annotations = {"kubernetes.io/config.hash": hash, "note": "kept"}
    return Pod(metadata=ObjectMeta(name="web-n1", namespace="default", uid=hash, annotations=annotations))


def mirror(hash: str = "h1", deleted: str = "") -> Pod:
    made = mirror_of(static(hash), NODE)
    made.metadata.deletion_timestamp = deleted
    return made


STEPS = [
    (None, None, MirrorStep.NOTHING),
    (static(), None, MirrorStep.CREATE),
    (static(), mirror(), MirrorStep.NOTHING),
    (static(), mirror("h0"), MirrorStep.DELETE),
    (static(), mirror(deleted="2026-01-02T03:04:05Z"), MirrorStep.DELETE),
    (None, mirror(), MirrorStep.DELETE),
]


@pytest.mark.parametrize(("pod", "mirror", "step"), STEPS)
def test_what_a_mirror_needs(pod: Pod | None, mirror: Pod | None, step: MirrorStep) -> None:
    assert next_step(pod, mirror) is step


def test_a_mirror_says_whose_it_is() -> None:
    made = mirror()
    assert is_mirror(made) and not is_mirror(static())
    assert made.metadata.uid == ""
    assert made.metadata.annotations == {
        "kubernetes.io/config.hash": "h1",
        "kubernetes.io/config.mirror": "h1",
        "note": "kept",
    }
