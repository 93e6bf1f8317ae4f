from __future__ import annotations

import pytest

from podling.kubelet.plan.restart import changed, definition_hash, policy_restarts
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
def test_policies(scene, kind, of_pod, own, after_success, after_failure):
    """R-INIT-2, R-INIT-6"""
    pod = scene.pod("a", of_pod)
    (container,) = pod.spec.containers
    container.restart_policy = own
    assert [policy_restarts(pod, container, kind, code) for code in (0, 1)] == [after_success, after_failure]


@pytest.mark.parametrize(("operator", "restarted"), [("In", [False, True]), ("NotIn", [True, False])])
def test_a_rule_on_exit_codes_comes_first(scene, operator, restarted):
    pod = scene.pod("a", "Never")
    (container,) = pod.spec.containers
    codes = ContainerRestartRuleOnExitCodes(operator=operator, values=[42])
    container.restart_policy, container.restart_policy_rules = (
        "Never",
        [ContainerRestartRule(action="Restart", exit_codes=codes)],
    )
    assert [policy_restarts(pod, container, REGULAR, code) for code in (1, 42)] == restarted


def test_a_debug_container_with_amounts_has_a_definition_too():
    """R-EPH-11"""

    def debugger(divisor):
        selector = ResourceFieldSelector(resource="limits.cpu", divisor=Quantity(divisor))
        source = EnvVarSource(resource_field_ref=selector)
        return EphemeralContainer(name="d", image="i", env=[EnvVar(name="CPU", value_from=source)])

    assert definition_hash(debugger("1")) == definition_hash(debugger("1")) != definition_hash(debugger("2"))


def test_only_the_image_makes_another_definition(scene):
    """R-INIT-5"""
    pod = scene.pod("a")
    (container,) = pod.spec.containers
    (instance,) = scene.observed(pod, "a=run").containers
    container.command = ["other"]
    assert not changed(container, instance)
    container.image = "other"
    assert changed(container, instance)
    assert definition_hash(container) != instance.hash
