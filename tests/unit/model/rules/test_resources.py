"""R-INIT-9: what a pod asks for, and its QoS class."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.model.quantity import Quantity
from podling.model.rules.resources import pod_limits, pod_requests, qos_class
from podling.model.types.container import Container, EphemeralContainer, ResourceRequirements
from podling.model.types.pod import Pod, PodSpec


def amounts(**given_: str) -> dict[str, Quantity]:
    return {name: Quantity(text) for name, text in given_.items()}


def container(
    requests: dict[str, Quantity], *, sidecar: bool = False, limits: dict[str, Quantity] | None = None
) -> Container:
    resources = ResourceRequirements(requests=requests, limits=limits or {})
    return Container(name="c", resources=resources, restart_policy="Always" if sidecar else None)


def asking(cpu: str, *, sidecar: bool = False) -> Container:
    return container(amounts(cpu=cpu), sidecar=sidecar, limits=amounts(cpu=cpu))


def make_pod(init: list[Container], app: list[Container], **spec: Any) -> Pod:
    return Pod(spec=PodSpec(init_containers=init, containers=app, **spec))


NEEDS = [
    ("apps add up", [], ["1", "500m"], "1500m"),
    ("init containers run one at a time", ["2", "3"], ["1"], "3"),
    ("a small init container costs nothing", ["1"], ["1", "1"], "2"),
    ("a sidecar runs beside the app", ["+1"], ["2"], "3"),
    ("an init container runs beside the sidecars before it", ["+1", "3"], ["1"], "4"),
    ("and not beside those after it", ["3", "+1"], ["1"], "3"),
    ("sidecars accumulate", ["+1", "+1", "2", "+1"], ["500m"], "4"),
]


@pytest.mark.parametrize(("why", "init", "app", "cpu"), NEEDS, ids=[row[0] for row in NEEDS])
def test_what_a_pod_needs(why: str, init: list[str], app: list[str], cpu: str) -> None:
    pod = make_pod(
        [asking(text.lstrip("+"), sidecar=text.startswith("+")) for text in init],
        [asking(text) for text in app],
    )
    assert pod_requests(pod) == {"cpu": Quantity(cpu)}
    assert pod_limits(pod) == {"cpu": Quantity(cpu)}


def test_each_resource_is_counted_by_itself() -> None:
    pod = make_pod([container(amounts(cpu="2", memory="1Mi"))], [container(amounts(cpu="1", memory="1Gi"))])
    assert pod_requests(pod) == amounts(cpu="2", memory="1Gi")


def test_overhead_is_requested_and_raises_only_limits_that_exist() -> None:
    pod = make_pod([], [asking("1")], overhead=amounts(cpu="100m", memory="1Mi"))
    assert pod_requests(pod) == amounts(cpu="1100m", memory="1Mi")
    assert pod_limits(pod) == amounts(cpu="1100m")


def test_resources_of_the_pod_speak_for_its_containers() -> None:
    own = ResourceRequirements(requests=amounts(cpu="2", storage="1"), limits=amounts(memory="1Gi"))
    pod = make_pod([], [container(amounts(cpu="1", memory="1Mi"))], resources=own, overhead=amounts(cpu="1"))
    assert pod_requests(pod) == amounts(cpu="3", memory="1Mi")
    assert pod_limits(pod) == amounts(memory="1Gi")


def test_ephemeral_containers_do_not_count() -> None:
    guest = EphemeralContainer(name="e", resources=ResourceRequirements(requests=amounts(cpu="9")))
    pod = make_pod([], [asking("1")], ephemeral_containers=[guest])
    assert pod_requests(pod) == amounts(cpu="1")


BOTH = amounts(cpu="1", memory="1Gi")
FULL = container(BOTH, limits=BOTH)
QOS = [
    ("nothing asked", [], [Container()], None, "BestEffort"),
    ("zero is nothing", [], [container(amounts(cpu="0"))], None, "BestEffort"),
    ("other resources are nothing", [], [container({"example.com/gpu": Quantity("1")})], None, "BestEffort"),
    ("requests equal limits", [], [FULL], None, "Guaranteed"),
    ("requests below limits", [], [container(amounts(cpu="1"), limits=BOTH)], None, "Burstable"),
    ("only one resource", [], [container(amounts(cpu="1"), limits=amounts(cpu="1"))], None, "Burstable"),
    ("one container without", [], [FULL, Container()], None, "Burstable"),
    ("init containers count too", [Container()], [FULL], None, "Burstable"),
    ("and may be guaranteed too", [FULL], [FULL], None, "Guaranteed"),
    ("sums equal, each unequal", [], [FULL, container({}, limits=BOTH)], None, "Burstable"),
    (
        "the pod's own resources decide",
        [],
        [Container()],
        ResourceRequirements(requests=BOTH, limits=BOTH),
        "Guaranteed",
    ),
    ("the pod's own requests alone", [], [FULL], ResourceRequirements(requests=BOTH), "Burstable"),
    ("an empty pod level decides, too", [], [FULL], ResourceRequirements(), "BestEffort"),
    ("less than nothing is nothing", [], [container(amounts(cpu="-1"))], None, "BestEffort"),
]


@pytest.mark.parametrize(("why", "init", "app", "own", "qos"), QOS, ids=[row[0] for row in QOS])
def test_qos_class(
    why: str, init: list[Container], app: list[Container], own: ResourceRequirements | None, qos: str
) -> None:
    assert qos_class(make_pod(init, app, resources=own)) == qos


milli = st.integers(0, 10)
init_steps = st.lists(st.tuples(st.booleans(), milli), max_size=6)


@given(init_steps, st.lists(milli, min_size=1, max_size=4))
def test_the_request_covers_every_moment_and_is_reached_at_one(
    steps: list[tuple[bool, int]], apps: list[int]
) -> None:
    """A model that plays the pod's life: at each moment, what runs at once."""
    moments, beside = [], 0
    for sidecar, need in steps:
        moments.append(beside + need)
        beside += need if sidecar else 0
    moments.append(beside + sum(apps))
    pod = make_pod(
        [asking(f"{need}m", sidecar=sidecar) for sidecar, need in steps],
        [asking(f"{need}m") for need in apps],
    )
    assert pod_requests(pod)["cpu"].milli_value() == max(moments)
