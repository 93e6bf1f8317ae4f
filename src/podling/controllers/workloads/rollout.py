"""What a Deployment does next to its ReplicaSets: sizes, revisions, history. Pure.

    rolling       the new set grows as far as `maxSurge` lets it; the old ones shrink as far as there are more
                  pods available than `maxUnavailable` asks for, those that are not available first
    proportional  the Deployment was scaled, or is paused, with several sets that have pods: each grows or
                  shrinks by its part, so that a rollout that is bad does not spread

A step is a list of sizes; the next one is planned when the ReplicaSets say what came of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from podling.model.codec import json
from podling.model.types.apps import Deployment, ReplicaSet
from podling.model.types.pod import PodTemplateSpec

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        HISTORY,
        DESIRED,
        MOST,
    }
)
"""Annotations of a Deployment that its ReplicaSets do not get."""
LONGEST_HISTORY = 2000
MOST_DIGITS = 18
"""Of a number in an annotation."""
LONGEST_NAME = 253
UNLIMITED = (1 << 31) - 1
"""In place of a limit or a deadline that is not set."""
LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Scale(NamedTuple):
    """A ReplicaSet, by name, and how many pods it is to have."""

    name: str
    size: int


def desired(deployment: Deployment) -> int:
    return deployment.spec.replicas or 0


def size_of(one: ReplicaSet) -> int:
    return one.spec.replicas or 0


def is_rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == "RollingUpdate"


def max_surge(deployment: Deployment) -> int:
    return _bounds(deployment)[0]


def max_unavailable(deployment: Deployment) -> int:
    return min(_bounds(deployment)[1], desired(deployment))


def _bounds(deployment: Deployment) -> tuple[int, int]:
    rolling = deployment.spec.strategy.rolling_update
    if not is_rolling(deployment) or rolling is None:
        return 0, 0
    surge = part(rolling.max_surge or 0, desired(deployment), up=True)
    lost = part(rolling.max_unavailable or 0, desired(deployment), up=False)
    return (surge, lost) if surge or lost else (0, 1)


def part(amount: int | str, of: int, *, up: bool) -> int:
    """A number, or a percentage of `of`."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    hundredths = (int(digits) if len(digits) <= MOST_DIGITS else UNLIMITED) * of
    return -(-hundredths // 100) if up else hundredths // 100


def by_age(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Oldest first."""
    return sorted(sets, key=lambda one: (one.metadata.creation_timestamp, one.metadata.name))


def active(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    return [one for one in sets if size_of(one) > 0]


def split(deployment: Deployment, sets: Sequence[ReplicaSet]) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """The oldest set of the Deployment's template, and the others, oldest first."""
    ordered, wanted = by_age(sets), without_hash(deployment.spec.template)
    new = next((one for one in ordered if without_hash(one.spec.template) == wanted), None)
    return new, [one for one in ordered if one is not new]


def without_hash(template: PodTemplateSpec) -> PodTemplateSpec:
    labels = {key: value for key, value in template.metadata.labels.items() if key != HASH_LABEL}
    return replace(template, metadata=replace(template.metadata, labels=labels))


def template_hash(template: PodTemplateSpec, collisions: int | None) -> str:
    """Letters that differ for different templates; if not, with one more collision counted they do."""
    said = json.encode(template) + (b"" if collisions is None else b"%d" % collisions)
    number = int.from_bytes(hashlib.blake2b(said, digest_size=4).digest())
    return "".join(LETTERS[ord(digit) % len(LETTERS)] for digit in str(number))


def name_of_set(deployment: Deployment, hashed: str) -> str:
    return f"{deployment.metadata.name[: LONGEST_NAME - len(hashed) - 1]}-{hashed}"


def revision(one: ReplicaSet) -> int:
    """0 when it has none that is a number."""
    return _number(one, REVISION) or 0


def annotated(deployment: Deployment, one: ReplicaSet, number: int) -> ReplicaSet:
    """The new set with the Deployment's annotations and the revision `number`, unless its own is higher. One
    that is rolled back to remembers the revisions it had."""
    copied = {k: v for k, v in deployment.metadata.annotations.items() if k not in NOT_COPIED}
    annotations = {**one.metadata.annotations, **copied}
    before = annotations.get(REVISION)
    if revision(one) < number:
        annotations[REVISION] = str(number)
        if before is not None:
            annotations[HISTORY] = remembered(annotations.get(HISTORY, ""), before)
    return replace(one, metadata=replace(one.metadata, annotations=annotations))


def remembered(history: str, last: str) -> str:
    """A list of revisions with one more, without so many of the oldest that it is too long."""
    said = ",".join([*filter(None, history.split(",")), last])
    if len(said) <= LONGEST_HISTORY:
        return said
    comma = said.find(",", len(said) - LONGEST_HISTORY - 1)
    return said[comma + 1 :] if comma >= 0 else ""


def resized(deployment: Deployment, one: ReplicaSet, size: int) -> ReplicaSet:
    """With what it needs later to find its part when the Deployment is scaled."""
    most = desired(deployment) + max_surge(deployment)
    annotations = {**one.metadata.annotations, DESIRED: str(desired(deployment)), MOST: str(most)}
    meta = replace(one.metadata, annotations=annotations)
    return replace(one, metadata=meta, spec=replace(one.spec, replicas=size))


def new_size(deployment: Deployment, others: Iterable[ReplicaSet], size: int) -> int:
    """How many pods the new set, which has `size`, may have now beside the others."""
    if not is_rolling(deployment):
        return desired(deployment)
    room = desired(deployment) + max_surge(deployment) - sum(map(size_of, others)) - size
    return size + max(min(room, desired(deployment) - size), 0)


def rolling(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scale]:
    """The next step of a rolling update; none when there is none to take now."""
    size = size_of(new)
    wanted = desired(deployment) if size > desired(deployment) else new_size(deployment, old, size)
    if wanted != size:
        return [Scale(new.metadata.name, wanted)]
    running = by_age(active(old))
    left = {one.metadata.name: size_of(one) for one in running}
    available = {one.metadata.name: one.status.available_replicas for one in running}
    least = desired(deployment) - max_unavailable(deployment)
    may_go = sum(left.values()) + size - least - (size - new.status.available_replicas)
    if may_go <= 0 or any(left[name] < available[name] for name in left):
        # A set that still tells of pods that are to go is waited for.
        return []
    steps: list[Scale] = []

    def shrink(name: str, by: int) -> int:
        if by > 0:
            left[name] -= by
            steps.append(Scale(name, left[name]))
        return max(by, 0)

    for name in left:
        may_go -= shrink(name, min(may_go, left[name] - available[name]))
    may_go = sum(available.values()) + new.status.available_replicas - least
    for name in left:
        may_go -= shrink(name, min(may_go, left[name]))
    return steps


def scaled(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Scale]:
    """The sizes of the sets of a Deployment that was scaled or is paused, also those that stay. The old sets
    are in the order of their age."""
    every = [*old, new] if new is not None else list(old)
    running = active(every)
    if len(running) <= 1:
        # The newest, when none has pods.
        only = running or every[-1:]
        return [Scale(one.metadata.name, desired(deployment)) for one in only]
    if new is not None and _is_saturated(deployment, new):
        return [Scale(one.metadata.name, 0) for one in active(old)]
    return _proportional(deployment, running) if is_rolling(deployment) else []


def was_scaled(deployment: Deployment, sets: Iterable[ReplicaSet]) -> bool:
    numbers = (_number(one, DESIRED) for one in active(sets))
    return any(number is not None and number != desired(deployment) for number in numbers)


def _is_saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    has = {size_of(new), _number(new, DESIRED), new.status.available_replicas}
    return has == {desired(deployment)}


def _proportional(deployment: Deployment, sets: Sequence[ReplicaSet]) -> list[Scale]:
    allowed = desired(deployment) + max_surge(deployment) if desired(deployment) else 0
    change = allowed - sum(map(size_of, sets))
    # The largest first; of equal ones grow the newer, shrink the older.
    ordered = by_age(sets)[:: -1 if change > 0 else 1]
    ordered.sort(key=size_of, reverse=True)
    left, sizes = change, {}
    for one in ordered:
        fraction = _fraction(deployment, one) if change else 0
        share = min(fraction, left) if change > 0 else max(fraction, left)
        sizes[one.metadata.name] = size_of(one) + share
        left -= share
    first = ordered[0].metadata.name
    sizes[first] = max(sizes[first] + left, 0)
    return [Scale(*each) for each in sizes.items()]


def _fraction(deployment: Deployment, one: ReplicaSet) -> int:
    """By how many pods the set grows, if every set keeps its part."""
    if not desired(deployment):
        return -size_of(one)
    before = _number(one, MOST) or deployment.status.replicas
    if not before:
        return 0
    # Half away from zero.
    return int(size_of(one) * (desired(deployment) + max_surge(deployment)) / before + 0.5) - size_of(one)


def _number(one: ReplicaSet, annotation: str) -> int | None:
    # Whoever may write ReplicaSets writes it: a longer one is no number for Go, and an error for Python.
    text = one.metadata.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


def to_forget(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Old sets without pods beyond `revisionHistoryLimit`, of the lowest revisions."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit == UNLIMITED:
        return []
    alive = [one for one in old if not one.metadata.deletion_timestamp]
    alive.sort(key=lambda one: (revision(one), one.metadata.creation_timestamp, one.metadata.name))
    return [one for one in alive[: max(len(alive) - limit, 0)] if _is_over(one)]


def _is_over(one: ReplicaSet) -> bool:
    is_observed = one.metadata.generation <= one.status.observed_generation
    return not size_of(one) and not one.status.replicas and is_observed
