"""serviceAccountToken projections: the token as a file, for nobody but whom the pod runs as. Pure."""

from __future__ import annotations

from podling.kubelet.container_types import all_containers
from podling.kubelet.volumes.objects import Objects, token_key
from podling.kubelet.volumes.payload import File, Payload
from podling.model.pod import Pod
from podling.model.volume import ServiceAccountTokenProjection

OWNERS_ONLY = 0o600


def payload(source: ServiceAccountTokenProjection, objects: Objects, pod: Pod, mode: int) -> Payload:
    """Where a user or a group is known to own it, nobody else may read it; the group's right comes with
    fsGroup."""
    owner = only_user(pod)
    context = pod.spec.security_context
    owned = owner is not None or (context is not None and context.fs_group is not None)
    token = objects.tokens[token_key(source)]
    return {source.path: File(token.encode(), OWNERS_ONLY if owned else mode, owner)}


def only_user(pod: Pod) -> int | None:
    """The user that all containers say they run as; None when they differ or one does not say."""
    of_pod = pod.spec.security_context.run_as_user if pod.spec.security_context else None
    users = set()
    for _, container in all_containers(pod):
        context = container.security_context
        own = context.run_as_user if context else None
        users.add(of_pod if own is None else own)
    return users.pop() if len(users) == 1 else None
