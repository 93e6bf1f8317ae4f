from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from podling.kubelet.plan.admission import Enforcers, unenforceable
from podling.model.types.container import AppArmorProfile, SecurityContext
from podling.model.types.pod import PodSecurityContext

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

ALL, NOTHING = Enforcers(True, True), Enforcers(False, False)
ARMOR = "AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host"
GROUPS = (
    "SupplementalGroupsPolicyNotSupported",
    "SupplementalGroupsPolicy=Strict is not supported in this node",
)

PODS = [
    (PodSecurityContext(), None, None),
    (PodSecurityContext(supplemental_groups_policy="Merge"), None, None),
    (PodSecurityContext(supplemental_groups_policy="Strict"), None, GROUPS),
    (PodSecurityContext(app_armor_profile=AppArmorProfile(type="RuntimeDefault")), None, ARMOR),
    (PodSecurityContext(app_armor_profile=AppArmorProfile(type="Unconfined")), None, None),
    (PodSecurityContext(), AppArmorProfile(type="Localhost", localhost_profile="p"), ARMOR),
    (None, AppArmorProfile(type="Unconfined"), None),
]


@pytest.mark.parametrize(("of_pod", "of_init", "refused"), PODS)
def test_what_cannot_be_enforced_is_refused(
    scene: type[Scene],
    of_pod: PodSecurityContext | None,
    of_init: AppArmorProfile | None,
    refused: tuple[str, str] | None,
) -> None:
    pod = scene.pod("i / a")
    pod.spec.security_context = of_pod
    pod.spec.init_containers[0].security_context = SecurityContext(app_armor_profile=of_init)
    refusal = unenforceable(pod, NOTHING)
    assert (refusal and (refusal.reason, refusal.message)) == refused
    assert unenforceable(pod, ALL) is None
