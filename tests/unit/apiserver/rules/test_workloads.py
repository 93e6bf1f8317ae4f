"""Which templates of pods a StatefulSet may have (R-SYS-8)."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.rules.workloads import validate_stateful_set_spec
from podling.model.codec.json import from_data
from podling.model.types.apps import StatefulSetSpec

CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
OTHER = {"name": "other", "emptyDir": {}}


def claims(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name}, **CLAIM} for name in names]


def faults(**fields: Any) -> list[str]:
    """Of volumes and mounts only: the rest of what is missing here is another matter."""
    pod = {"containers": [{"name": "c", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {**pod, "volumes": fields.pop("volumes", [])}}
    data = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **fields}
    found = validate_stateful_set_spec(from_data(data, StatefulSetSpec), "spec")
    return [cause.field for cause in found if "volume" in cause.field]


def test_a_container_mounts_the_claim_that_each_pod_gets() -> None:
    assert faults() == ["spec.template.spec.containers[0].volumeMounts[0].name"]
    assert faults(volumeClaimTemplates=claims("data")) == []


@pytest.mark.parametrize(
    ("volumes", "place"),
    [
        ([{"name": "No_Name", "emptyDir": {}}], 2),
        ([{"name": "data", "emptyDir": {}}, {"name": "No_Name", "emptyDir": {}}], 2),
        ([OTHER, OTHER], 3),
    ],
)
def test_claims_come_before_volumes_and_in_their_place(volumes: list[Any], place: int) -> None:
    found = faults(volumes=volumes, volumeClaimTemplates=claims("data", "more"))
    assert found == [f"spec.template.spec.volumes[{place}].name"]


def test_what_may_not_change_is_not_judged_when_it_changes() -> None:
    data = {"volumeClaimTemplates": [{}], "serviceName": "No_Name"}
    spec = from_data(data, StatefulSetSpec)
    new, changed = (
        {cause.field for cause in validate_stateful_set_spec(spec, "spec", changed=changed)}
        for changed in (False, True)
    )
    assert new - changed == {
        "spec.serviceName",
        "spec.volumeClaimTemplates[0].spec.accessModes",
        "spec.volumeClaimTemplates[0].spec.resources[storage]",
    }
