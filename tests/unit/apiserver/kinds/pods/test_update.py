"""What an update of a pod leaves alone. What it may change is in `pod_tables/changes/update.yaml`."""

from __future__ import annotations

from collections.abc import Callable

from podling.apiserver.kinds.pods.pods import Pods
from podling.model.types.pod import Pod

MakePod = Callable[..., Pod]


def test_an_update_of_the_pod_leaves_its_status_alone(make_pod: MakePod) -> None:
    new, old = make_pod(status={"phase": "Failed"}), make_pod(status={"phase": "Running"})
    Pods().prepare_update(new, old)
    assert new.status.phase == "Running"
