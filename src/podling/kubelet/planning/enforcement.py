"""What of a pod's security the node cannot enforce: such a pod is refused rather than run without. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podling.kubelet.container_types import all_containers
from podling.kubelet.planning.admission import Refusal
from podling.model.container import AppArmorProfile
from podling.model.pod import Pod, PodSecurityContext


class Enforcers(msgspec.Struct, frozen=True):
    """`app_armor`: the kernel has it; `groups_policy`: the runtime keeps to supplementalGroupsPolicy."""

    app_armor: bool
    groups_policy: bool


def unenforceable(pod: Pod, by: Enforcers) -> Refusal | None:
    if not by.app_armor and any(profile.type != "Unconfined" for profile in _app_armor(pod)):
        return Refusal("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host")
    policy = (pod.spec.security_context or PodSecurityContext()).supplemental_groups_policy
    if policy == "Strict" and not by.groups_policy:
        message = f"SupplementalGroupsPolicy={policy} is not supported in this node"
        return Refusal("SupplementalGroupsPolicyNotSupported", message)
    return None


def _app_armor(pod: Pod) -> Iterator[AppArmorProfile]:
    contexts = [pod.spec.security_context, *(c.security_context for _, c in all_containers(pod))]
    yield from (context.app_armor_profile for context in contexts if context and context.app_armor_profile)
