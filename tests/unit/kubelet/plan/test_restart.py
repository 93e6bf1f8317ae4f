from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from podling.kubelet.plan.plan import plan
from podling.kubelet.plan.restart import (
    changed,
    crashes_after,
    definition_hash,
    delay,
    from_before,
    policy_restarts,
    restart_at,
    retry_at,
)
from podling.kubelet.pod.containers import ContainerType
from podling.model.quantity import Quantity
from podling.model.types.container import (
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EnvVar,
    EnvVarSource,
    EphemeralContainer,
)
from podling.model.types.references import ResourceFieldSelector

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

REGULAR, INIT, SIDECAR = ContainerType.REGULAR, ContainerType.INIT, ContainerType.SIDECAR

POLICIES = [
    # kind     pod's        container's   after 0  after 1
    (REGULAR,  "Always",    None,         True,    True),
    (REGULAR,  "OnFailure", None,         False,   True),
    (REGULAR,  "Never",     None,         False,   False),
    (REGULAR,  "Never",     "OnFailure",  False,   True),
    (REGULAR,  "Always",    "Never",      False,   False),
    (INIT,     "Always",    None,         False,   True),
    (INIT,     "OnFailure", None,         False,   True),
    (INIT,     "Never",     None,         False,   False),
    (SIDECAR,  "Never",     "Always",     True,    True),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "of_pod", "own", "after_success", "after_failure"), POLICIES)
def test_policies(
    scene: type[Scene],
    kind: ContainerType,
    of_pod: str,
    own: str | None,
    after_success: bool,
    after_failure: bool,
) -> None:
    """R-INIT-2, R-INIT-6"""
    pod = scene.pod("a", of_pod)
    (container,) = pod.spec.containers
    container.restart_policy = own
    assert [policy_restarts(pod, container, kind, code) for code in (0, 1)] == [after_success, after_failure]


@pytest.mark.parametrize(("operator", "restarted"), [("In", [False, True]), ("NotIn", [True, False])])
def test_a_rule_on_exit_codes_comes_first(scene: type[Scene], operator: str, restarted: list[bool]) -> None:
    pod = scene.pod("a", "Never")
    (container,) = pod.spec.containers
    codes = ContainerRestartRuleOnExitCodes(operator=operator, values=[42])
    container.restart_policy, container.restart_policy_rules = (
        "Never",
        [ContainerRestartRule(action="Restart", exit_codes=codes)],
    )
    assert [policy_restarts(pod, container, REGULAR, code) for code in (1, 42)] == restarted


def test_a_debug_container_with_amounts_has_a_definition_too() -> None:
    """R-EPH-11"""

    def debugger(divisor: str) -> EphemeralContainer:
        selector = ResourceFieldSelector(resource="limits.cpu", divisor=Quantity(divisor))
        source = EnvVarSource(resource_field_ref=selector)
        return EphemeralContainer(name="d", image="i", env=[EnvVar(name="CPU", value_from=source)])

    assert definition_hash(debugger("1")) == definition_hash(debugger("1")) != definition_hash(debugger("2"))


def test_only_the_image_makes_another_definition(scene: type[Scene]) -> None:
    """R-INIT-5"""
    pod = scene.pod("a")
    (container,) = pod.spec.containers
    (instance,) = scene.observed(pod, "a=run").containers
    container.command = ["other"]
    assert not changed(container, instance)
    container.image = "other"
    assert changed(container, instance)
    assert definition_hash(container) != instance.hash


def test_ten_seconds_doubling_to_five_minutes() -> None:
    """R-INIT-2"""
    delays = [delay(failures).total_seconds() for failures in (0, 1, 2, 3, 4, 5, 6, 7, 1000)]
    assert delays == [0, 10, 20, 40, 80, 160, 300, 300, 300]


@pytest.mark.parametrize(("ran_for", "crashes"), [(1, 6), (600, 6), (601, 1)])
def test_more_than_ten_minutes_of_running_clear_the_record(
    scene: type[Scene], ran_for: int, crashes: int
) -> None:
    """R-INIT-2"""
    (ended,) = scene.observed(scene.pod("a"), "a=exit1~5").containers
    ended = replace(ended, started_at=ended.finished_at - timedelta(seconds=ran_for))
    assert crashes_after(ended) == crashes


def test_one_that_could_not_start_did_not_run_since_the_epoch(scene: type[Scene]) -> None:
    (ended,) = scene.observed(scene.pod("a"), "a=exit128~5").containers
    ended = replace(ended, started_at=datetime(1970, 1, 1, tzinfo=UTC), created_at=scene.ago(3))
    assert crashes_after(ended) == 6


@pytest.mark.parametrize(("created", "counts"), [(90, False), (30, True)])
def test_a_start_that_died_with_the_kubelet_before_is_no_failure(
    scene: type[Scene], created: int, counts: bool
) -> None:
    """R-INIT-2, R-INIT-11: the runtime takes a start back whose caller dies."""
    pod = scene.pod("a")
    observed = scene.observed(pod, "a=exit128~5@1", started_at=scene.ago(60))
    never = datetime(1970, 1, 1, tzinfo=UTC)
    (ended,) = observed.containers
    ended = replace(ended, started_at=never, created_at=scene.ago(created))
    assert from_before(ended, observed) is not counts
    made = plan(pod, replace(observed, containers=(ended,)), scene.NOW)
    assert scene.say(made) == ("" if counts else "start a#1")


def test_delays_count_from_the_end(scene: type[Scene]) -> None:
    (ended,) = scene.observed(scene.pod("a"), "a=exit1~2@5").containers
    assert restart_at(ended) == scene.ago(5) + timedelta(seconds=20)
    assert retry_at(scene.failure("ErrImagePull", 5, count=2)) == scene.ago(5) + timedelta(seconds=20)
    assert retry_at(scene.failure("RunContainerError", 5, count=0)) == scene.ago(4)
