"""AppArmor profiles that were said by annotation become fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.kinds.pods.update import adopt_app_armor_annotations
from podling.model.codec.json import to_data
from podling.model.types.pod import Pod

MakePod = Callable[..., Pod]

KEY = "container.apparmor.security.beta.kubernetes.io/app"
DEFAULT = {"type": "RuntimeDefault"}


@pytest.mark.parametrize(
    ("annotation", "spec", "profile"),
    [
        ("runtime/default", {}, DEFAULT),
        ("unconfined", {}, {"type": "Unconfined"}),
        ("localhost/strict", {}, {"type": "Localhost", "localhostProfile": "strict"}),
        ("localhost/", {}, None),
        ("else", {}, None),
        ("runtime/default", {"securityContext": {"appArmorProfile": DEFAULT}}, None),
        ("unconfined", {"securityContext": {"appArmorProfile": DEFAULT}}, {"type": "Unconfined"}),
        ("unconfined", {"os": {"name": "windows"}}, None),
    ],
)
def test_adoption(make_pod: MakePod, annotation: str, spec: dict[str, Any], profile: Any) -> None:
    pod = make_pod(metadata={"annotations": {KEY: annotation}}, **spec)
    adopt_app_armor_annotations(pod)
    context = pod.spec.containers[0].security_context
    found = context.app_armor_profile if context is not None else None
    assert (to_data(found) if found is not None else None) == profile


def test_a_field_that_is_set_stands(make_pod: MakePod) -> None:
    app = {"name": "app", "image": "a", "securityContext": {"privileged": True, "appArmorProfile": DEFAULT}}
    pod = make_pod(metadata={"annotations": {KEY: "unconfined"}}, containers=[app])
    adopt_app_armor_annotations(pod)
    assert to_data(pod.spec.containers[0].security_context) == app["securityContext"]
