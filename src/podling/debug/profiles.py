"""Which rights a debug container has: the profiles of kubectl 1.36, and `auto`, the strongest allowed.

A profile is judged by what the namespace enforces of the Pod Security Standards and by what the target's pod
asks of its containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from podling.model.types.pod import Pod

AUTO = "auto"
ENFORCE = "pod-security.kubernetes.io/enforce"
NOBODY = 65534
"""The user of a container that must not be root in a pod that names none."""

Document = dict[str, Any]

PROFILES: Mapping[str, Document] = {
    "sysadmin": {"privileged": True},
    "netadmin": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}},
    "general": {"capabilities": {"add": ["SYS_PTRACE"]}},
    "baseline": {},
    "restricted": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "legacy": {},
}
"""Profile → the container's security context."""
OF_STANDARD = {"privileged": "general", "baseline": "baseline", "restricted": "restricted"}
"""Standard that a namespace enforces → the strongest profile it lets in, of those that debuggers need."""


class Rights(NamedTuple):
    """A container's security context; `given_up` says what the strongest profile would have allowed, or is
    empty."""

    profile: str
    security_context: Document
    given_up: str = ""


def rights(profile: str, pod: Pod, target: str, enforced: str) -> Rights:
    """`target` is the container to look at, empty for the first; `enforced` the standard that the pod's
    namespace enforces; unknown ones count as privileged."""
    if profile != AUTO:
        return Rights(profile, dict(PROFILES[profile]))
    chosen = OF_STANDARD.get(enforced, "general")
    context = dict(PROFILES[chosen])
    spoken = []
    if chosen != "general":
        spoken.append(f'the namespace enforces "{enforced}": no SYS_PTRACE')
    of_pod = pod.spec.security_context
    must_not_be_root = chosen == "restricted" or bool(of_pod and of_pod.run_as_non_root)
    if must_not_be_root and not (of_pod and of_pod.run_as_user):
        # An image may name its user or root; a number is what the kubelet can judge. The target's own user
        # is the one who may look at its files.
        looked_at = (*pod.spec.containers, *pod.spec.init_containers)
        named = next((one for one in looked_at if one.name == target), looked_at[0])
        own = named.security_context
        context["runAsUser"] = user = (own and own.run_as_user) or NOBODY
        spoken.append(f"root is not allowed: user {user}")
    return Rights(chosen, context, "; ".join(spoken))
