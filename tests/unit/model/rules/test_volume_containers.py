"""Volume containers as a node sees them, and what they need; R-VOL-1, R-INIT-9."""

from __future__ import annotations

from podling.model.quantity import Quantity
from podling.model.rules.resources import (
    GUARANTEED,
    pod_requests,
    qos_class,
    volume_container_names,
    with_volume_containers,
)
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.volume import EmptyDirVolumeSource, Volume


def container(name: str, cpu: str) -> Container:
    amounts = {"cpu": Quantity(cpu), "memory": Quantity("1Mi")}
    return Container(name=name, resources=ResourceRequirements(requests=amounts, limits=amounts))


def pod(*volumes: str, init: str = "1", app: str = "1") -> Pod:
    made = [Volume(name=f"v{i}", container=container(f"v{i}", cpu)) for i, cpu in enumerate(volumes)]
    plain = Volume(name="plain", empty_dir=EmptyDirVolumeSource())
    return Pod(
        spec=PodSpec(
            volumes=[plain, *made], init_containers=[container("i", init)], containers=[container("a", app)]
        )
    )


def test_a_node_has_them_before_the_init_containers() -> None:
    seen = with_volume_containers(pod("1", "1"))
    assert [c.name for c in seen.spec.init_containers] == ["v0", "v1", "i"]
    assert volume_container_names(seen.spec) == {"v0", "v1"}
    again = with_volume_containers(seen)
    assert [c.name for c in again.spec.init_containers] == ["v0", "v1", "i"]


def test_a_pod_without_any_is_left_as_it_is() -> None:
    plain = pod()
    assert with_volume_containers(plain) is plain


def test_they_run_together_so_they_need_all_at_once() -> None:
    for given, expected in ((pod("2", "3"), "5"), (pod("2", "3", init="6"), "6"), (pod("1", app="4"), "4")):
        for seen in (given, with_volume_containers(given)):
            assert pod_requests(seen)["cpu"] == Quantity(expected)
            assert qos_class(seen) == GUARANTEED
