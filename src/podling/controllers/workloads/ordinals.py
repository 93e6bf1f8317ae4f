"""What a StatefulSet does next to its pods, each of which has a number: its ordinal. Pure.

    OrderedReady  one pod at a time, and each only while all of lower ordinals are available; those beyond the
                  last ordinal go from the highest on
    Parallel      all that are missing are made at once, and all that are too many go at once

Then, if all that was in order, a rolling update deletes one pod of an old revision, from the highest ordinal
down to the partition, and waits until the pod that takes its place is available. A pod that has ended is
deleted, so that it is made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from msgspec.structs import replace

from podling.controllers.endpoints import is_ready
from podling.controllers.workloads.claim_owners import is_due, is_stale
from podling.controllers.workloads.pods import available_in, from_template
from podling.controllers.workloads.revisions import POD_HASH, hash_of
from podling.model.rules.status import is_terminal
from podling.model.types.apps import StatefulSet, StatefulSetStatus
from podling.model.types.meta import LabelSelector
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod, PodTemplateSpec
from podling.model.types.volume import PersistentVolumeClaimVolumeSource, Volume

POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
MOST_DIGITS = 10

Claims = Mapping[str, PersistentVolumeClaim]
"""Those of the set's namespace, by name."""


class Verb(Enum):
    CREATE = "create"
    DELETE = "delete"
    CLAIM = "make the claims that the pod waits for"
    CORRECT = "give the pod its identity, and its claims their owners"
    OWN = "give the claims of a pod that goes their owners"


class Step(NamedTuple):
    verb: Verb
    pod: Pod


class Template(NamedTuple):
    """That of a revision, by its name."""

    revision: str
    template: PodTemplateSpec


class Revised(NamedTuple):
    """The revision that a rollout began with, and the one it leads to."""

    current: Template
    update: Template


class Plan(NamedTuple):
    """`stages` come one after the other; with `in_order`, so do the steps of each. `updating` is the pod that
    a rolling update deletes after them."""

    stages: list[list[Step]]
    in_order: bool
    updating: Pod | None = None


def ordinal(owner: StatefulSet, pod_name: str) -> int | None:
    """None when it is no name of a pod of the set."""
    prefix, dash, digits = pod_name.rpartition("-")
    if not dash or prefix != owner.metadata.name or not (digits.isascii() and digits.isdecimal()):
        return None
    is_number = len(digits) <= MOST_DIGITS and str(int(digits)) == digits
    return int(digits) if is_number else None


def ordinals(owner: StatefulSet) -> range:
    """Those it is to have."""
    start = owner.spec.ordinals.start if owner.spec.ordinals else 0
    return range(start, start + (owner.spec.replicas or 0))


def is_in_order(owner: StatefulSet) -> bool:
    return owner.spec.pod_management_policy != "Parallel"


def is_running(pod: Pod) -> bool:
    return pod.status.phase == "Running" and is_ready(pod)


def claim_name(owner: StatefulSet, template: PersistentVolumeClaim, number: int) -> str:
    return f"{template.metadata.name}-{owner.metadata.name}-{number}"


def claims_of(owner: StatefulSet, number: int) -> list[PersistentVolumeClaim]:
    """Those that the pod of this ordinal uses, as they are made."""
    chosen = (owner.spec.selector or LabelSelector()).match_labels
    return [
        replace(
            template,
            metadata=replace(
                template.metadata,
                name=claim_name(owner, template, number),
                namespace=owner.metadata.namespace,
                labels={**template.metadata.labels, **chosen},
            ),
        )
        for template in owner.spec.volume_claim_templates
    ]


def pod_of(owner: StatefulSet, one: Template, number: int) -> Pod:
    pod = _identified(owner, from_template(owner, one.template), number)
    labels = {**pod.metadata.labels, POD_HASH: one.revision}
    spec = replace(
        pod.spec,
        hostname=pod.metadata.name,
        subdomain=owner.spec.service_name,
        volumes=_volumes(owner, pod, number),
    )
    return replace(pod, metadata=replace(pod.metadata, labels=labels), spec=spec)


def corrected(owner: StatefulSet, pod: Pod) -> Pod:
    """With the labels and volumes that the set's pod of this name has."""
    number = ordinal(owner, pod.metadata.name) or 0
    pod = _identified(owner, pod, number)
    if _has_claims(owner, pod, number):
        return pod
    return replace(pod, spec=replace(pod.spec, volumes=_volumes(owner, pod, number)))


def _identified(owner: StatefulSet, pod: Pod, number: int) -> Pod:
    name = f"{owner.metadata.name}-{number}"
    labels = {**pod.metadata.labels, POD_NAME: name, POD_INDEX: str(number)}
    return replace(pod, metadata=replace(pod.metadata, name=name, labels=labels))


def _volumes(owner: StatefulSet, pod: Pod, number: int) -> list[Volume]:
    """The claims come first, in place of volumes of their names."""
    sources = {
        template.metadata.name: PersistentVolumeClaimVolumeSource(
            claim_name=claim_name(owner, template, number)
        )
        for template in owner.spec.volume_claim_templates
    }
    volumes = [Volume(name=name, persistent_volume_claim=source) for name, source in sources.items()]
    return [*volumes, *(volume for volume in pod.spec.volumes if volume.name not in sources)]


def _has_claims(owner: StatefulSet, pod: Pod, number: int) -> bool:
    used = {
        volume.name: volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim
    }
    return all(
        used.get(template.metadata.name) == claim_name(owner, template, number)
        for template in owner.spec.volume_claim_templates
    )


def plan(owner: StatefulSet, revised: Revised, pods: Iterable[Pod], claims: Claims, now: datetime) -> Plan:
    """`pods` are all that the set has."""
    in_order, wanted = is_in_order(owner), ordinals(owner)
    if owner.metadata.deletion_timestamp:
        return Plan([], in_order)
    standing = {number: pod for pod in pods if (number := ordinal(owner, pod.metadata.name)) is not None}
    first: list[Step] = []
    for number in wanted:
        steps, blocks = _keep(owner, revised, standing.get(number), number, claims, now)
        first += steps
        if blocks and in_order:
            return Plan([first], in_order)
    condemned = [standing[number] for number in sorted(standing.keys() - set(wanted), reverse=True)]
    owned = [Step(Verb.OWN, pod) for pod in condemned if _owns_other(owner, pod, claims)]
    going = [Step(Verb.DELETE, pod) for pod in to_go(owner, condemned, now)]
    stages = [first, owned, going]
    if (in_order and condemned) or owner.spec.update_strategy.type == "OnDelete":
        return Plan(stages, in_order)
    return Plan(stages, in_order, next_to_update(owner, revised, [standing.get(n) for n in wanted], now))


def _keep(
    owner: StatefulSet,
    revised: Revised,
    pod: Pod | None,
    number: int,
    claims: Claims,
    now: datetime,
) -> tuple[list[Step], bool]:
    """What an ordinal needs, and whether those above it wait for it."""
    if pod is None:
        wanted = pod_of(owner, revision_for(owner, revised, number), number)
        if is_stale(owner, wanted, _claims_there(owner, number, claims)):
            return [], True
        return [Step(Verb.CREATE, wanted)], True
    is_going = bool(pod.metadata.deletion_timestamp)
    if is_terminal(pod):
        return [] if is_going else [Step(Verb.DELETE, pod)], True
    steps = []
    if pod.status.phase == "Pending" and _lacks_claims(owner, number, claims):
        steps.append(Step(Verb.CLAIM, pod))
    if is_in_order(owner) and not _is_good(owner, pod, now):
        return steps, True
    if corrected(owner, pod) != pod or _owns_other(owner, pod, claims):
        steps.append(Step(Verb.CORRECT, pod))
    return steps, False


def revision_for(owner: StatefulSet, revised: Revised, number: int) -> Template:
    strategy = owner.spec.update_strategy
    if strategy.type != "RollingUpdate":
        return revised.update
    below = strategy.rolling_update.partition if strategy.rolling_update else owner.status.current_replicas
    return revised.current if number - ordinals(owner).start < (below or 0) else revised.update


def _is_available(owner: StatefulSet, pod: Pod, now: datetime) -> bool:
    return available_in(pod, owner.spec.min_ready_seconds, now) == 0


def _is_good(owner: StatefulSet, pod: Pod, now: datetime) -> bool:
    is_going = bool(pod.metadata.deletion_timestamp)
    return is_running(pod) and _is_available(owner, pod, now) and not is_going


def _claims_there(owner: StatefulSet, number: int, claims: Claims) -> list[PersistentVolumeClaim]:
    names = (claim_name(owner, template, number) for template in owner.spec.volume_claim_templates)
    return [claims[name] for name in names if name in claims]


def _lacks_claims(owner: StatefulSet, number: int, claims: Claims) -> bool:
    there = _claims_there(owner, number, claims)
    is_whole = len(there) == len(owner.spec.volume_claim_templates)
    return not is_whole or any(claim.metadata.deletion_timestamp for claim in there)


def claims_to_own(owner: StatefulSet, pod: Pod, claims: Claims) -> list[PersistentVolumeClaim]:
    """Those of the pod whose owners are not what the retention policy asks for."""
    number = ordinal(owner, pod.metadata.name)
    there = _claims_there(owner, number, claims) if number is not None else []
    return [claim for claim in there if is_due(owner, pod, claim, is_wanted=number in ordinals(owner))]


def _owns_other(owner: StatefulSet, pod: Pod, claims: Claims) -> bool:
    return bool(claims_to_own(owner, pod, claims))


def to_go(owner: StatefulSet, condemned: Sequence[Pod], now: datetime) -> list[Pod]:
    """Highest ordinal first. In order, one at a time, and an unhealthy one waits for those below it that are
    unhealthy, too."""
    if not is_in_order(owner):
        return [pod for pod in condemned if not pod.metadata.deletion_timestamp]
    if not condemned or condemned[0].metadata.deletion_timestamp:
        return []
    highest = condemned[0]
    lowest_unhealthy = next((pod for pod in reversed(condemned) if not _is_good(owner, pod, now)), None)
    return [highest] if _is_good(owner, highest, now) or highest is lowest_unhealthy else []


def next_to_update(
    owner: StatefulSet, revised: Revised, replicas: Sequence[Pod | None], now: datetime
) -> Pod | None:
    rolling = owner.spec.update_strategy.rolling_update
    lowest = (rolling.partition or 0) if rolling else 0
    for pod in reversed(replicas[lowest:]):
        if pod is None or pod.metadata.deletion_timestamp or is_terminal(pod):
            return None
        if hash_of(pod) != revised.update.revision:
            return pod
        if not _is_good(owner, pod, now):
            return None
    return None


def status_of(
    owner: StatefulSet,
    revised: Revised,
    pods: Iterable[Pod],
    collisions: int,
    now: datetime,
    *,
    updating: bool = False,
) -> StatefulSetStatus:
    """`updating`: a pod of the current revision was deleted, which `pods` do not show yet. A rollout that is
    over makes its revision the current one."""
    every = list(pods)
    revisions = [hash_of(pod) for pod in every if not pod.metadata.deletion_timestamp]
    ready = [pod for pod in every if is_running(pod)]
    status = StatefulSetStatus(
        observed_generation=owner.metadata.generation,
        replicas=len(every),
        ready_replicas=len(ready),
        available_replicas=sum(_is_available(owner, pod, now) for pod in ready),
        current_replicas=max(revisions.count(revised.current.revision) - updating, 0),
        updated_replicas=revisions.count(revised.update.revision),
        current_revision=revised.current.revision,
        update_revision=revised.update.revision,
        collision_count=collisions,
    )
    has = {status.updated_replicas, status.ready_replicas, status.replicas}
    if owner.spec.update_strategy.type == "RollingUpdate" and has == {owner.spec.replicas or 0}:
        return replace(
            status, current_replicas=status.updated_replicas, current_revision=status.update_revision
        )
    return status
