"""How many pods metrics ask for, and how many of those an autoscaler takes on or gives up at a time. Pure.

Values of metrics are thousandths, replicas int32. `Proposed` is what one metric asks for; `decided` holds it
against what was proposed lately (stabilization), against how much has changed lately (policies), and against
the bounds. Reasons and messages are Kubernetes'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import msgspec

from podling.model.rules.resources import is_supported_at_pod_level, pod_requests
from podling.model.rules.status import is_condition_true
from podling.model.time import parse_time
from podling.model.types.autoscaling import HorizontalPodAutoscalerSpec, HPAScalingRules
from podling.model.types.pod import Pod

TOLERANCE = 0.1
"""How far a metric may be from its target, as a part of it, without anything being done."""
INITIALIZATION = timedelta(minutes=5)
"""For so long after its start the CPU of a pod counts only while it is ready, and measured since."""
FIRST_READINESS = timedelta(seconds=30)
"""A pod that is not ready and has been so since this long after its start was never ready."""
DOWNSCALE_WINDOW = timedelta(minutes=5)
"""For so long the largest proposal holds, unless the autoscaler says otherwise."""
UP_FACTOR, UP_LEAST = 2.0, 4.0
"""An autoscaler without a behavior goes at once to so many times its pods, or so many."""
MOST = (1 << 31) - 1
LEAST = -(1 << 31)
LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
CPU = "cpu"
NO_PODS = "no pods returned by selector while calculating replica count"
NOT_MEASURED = "did not receive metrics for targeted pods (pods might be unready)"
READY = ("ReadyForNewScale", "recommended size matches current size")
UP_STABILIZED = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
DOWN_STABILIZED = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")

Said = tuple[Literal["True", "False"], str, str]
"""Status, reason and message of a condition."""


class Unknown(Exception):
    """A number of pods cannot be told; the message says why."""


class Measured(NamedTuple):
    """`value` is the average over the `window` that ended at `at`."""

    at: datetime
    window: timedelta
    value: int


class Tolerances(NamedTuple):
    down: float = TOLERANCE
    up: float = TOLERANCE

    def hold(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


def tolerances_of(spec: HorizontalPodAutoscalerSpec) -> Tolerances:
    behavior = spec.behavior
    sides = (behavior.scale_down, behavior.scale_up) if behavior is not None else (None, None)
    return Tolerances(
        *(
            rules.tolerance.nanos / 1e9 if rules is not None and rules.tolerance is not None else TOLERANCE
            for rules in sides
        )
    )


class Proposed(NamedTuple):
    """`usage` is the average that was measured, `percent` of what the pods request if that is aimed at."""

    replicas: int
    usage: int
    percent: int | None = None


class Groups(NamedTuple):
    """Of the pods of a target: how many are ready, and the names of those whose metrics do not count:
    because they are not ready, there is none, or they go or have failed."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def grouped(pods: Sequence[Pod], measured: Mapping[str, Measured], resource: str, now: datetime) -> Groups:
    ready, unready, missing, ignored = 0, set(), set(), set()
    for pod in pods:
        name, phase = pod.metadata.name, pod.status.phase
        if pod.metadata.deletion_timestamp or phase == "Failed":
            ignored.add(name)
        elif phase == "Pending":
            unready.add(name)
        elif name not in measured:
            missing.add(name)
        elif resource == CPU and is_starting(pod, measured[name], now):
            unready.add(name)
        else:
            ready += 1
    return Groups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def is_starting(pod: Pod, metric: Measured, now: datetime) -> bool:
    """Whether what a pod uses of the CPU says nothing of the work it does."""
    condition = next((one for one in pod.status.conditions if one.type == "Ready"), None)
    if condition is None or not pod.status.start_time:
        return True
    since = parse_time(condition.last_transition_time) if condition.last_transition_time else LONG_AGO
    began, is_unready = parse_time(pod.status.start_time), condition.status == "False"
    if began + INITIALIZATION > now:
        return is_unready or metric.at < since + metric.window
    return is_unready and began + FIRST_READINESS > since


def by_utilization(
    pods: Sequence[Pod],
    measured: Mapping[str, Measured],
    resource: str,
    container: str,
    target: int,
    current: int,
    tolerances: Tolerances,
    now: datetime,
) -> Proposed:
    """`target` per cent of what the pods request, or `container` of each. Raises Unknown."""
    groups, counted = _counted(pods, measured, resource, now)
    requests = {pod.metadata.name: request_of(pod, container, resource) for pod in pods}

    def ratio() -> tuple[float, int, int]:
        known = counted.keys() & requests.keys()
        used, requested = sum(counted[name] for name in known), sum(requests[name] for name in known)
        if not requested:
            raise Unknown("no metrics returned matched known pods")
        percent = _quotient(used * 100, requested)
        return percent / target, percent, _quotient(used, len(known))

    first, percent, raw = ratio()
    # Who is not measured is taken to use all that is requested before pods are given up.
    fallback = {name: _quotient(requests[name] * max(100, target), 100) for name in groups.missing}
    replicas = _replicas(groups, counted, first, lambda: ratio()[0], fallback, current, tolerances)
    return Proposed(replicas, raw, percent)


def by_average(
    pods: Sequence[Pod],
    measured: Mapping[str, Measured],
    resource: str,
    target: int,
    current: int,
    tolerances: Tolerances,
    now: datetime,
) -> Proposed:
    """`target` on average over the pods; `resource` is empty for a metric that is none. Raises Unknown."""
    groups, counted = _counted(pods, measured, resource, now)

    def usage() -> int:
        return _quotient(sum(counted.values()), len(counted))

    first = usage()
    fallback = dict.fromkeys(groups.missing, target)
    replicas = _replicas(
        groups, counted, first / target, lambda: usage() / target, fallback, current, tolerances
    )
    return Proposed(replicas, first)


def _counted(
    pods: Sequence[Pod], measured: Mapping[str, Measured], resource: str, now: datetime
) -> tuple[Groups, dict[str, int]]:
    """Raises Unknown."""
    if not pods:
        raise Unknown(NO_PODS)
    groups = grouped(pods, measured, resource, now)
    left_out = groups.ignored | groups.unready
    counted = {name: metric.value for name, metric in measured.items() if name not in left_out}
    if not counted:
        raise Unknown(NOT_MEASURED)
    return groups, counted


def _replicas(
    groups: Groups,
    counted: dict[str, int],
    first: float,
    ratio: Callable[[], float],
    fallback: Mapping[str, int],
    current: int,
    tolerances: Tolerances,
) -> int:
    """`first` is the ratio of what is `counted` to its target. Pods that are not measured, or not ready, are
    then counted on the side of doing nothing, and `ratio` is asked again."""
    with_unready = bool(groups.unready) and first > 1.0
    if not with_unready and not groups.missing:
        return current if tolerances.hold(first) else _ceil(first * groups.ready)
    if first < 1.0:
        counted.update(fallback)
    elif first > 1.0:
        counted.update(dict.fromkeys(groups.missing, 0))
    if with_unready:
        counted.update(dict.fromkeys(groups.unready, 0))
    second = ratio()
    if tolerances.hold(second) or (first < 1.0 < second) or (second < 1.0 < first):
        return current
    replicas = _ceil(second * len(counted))
    turns = replicas > current if second < 1.0 else replicas < current
    return current if turns else replicas


def by_value(pods: Sequence[Pod], value: int, target: int, current: int, tolerances: Tolerances) -> Proposed:
    """Of a metric that is not the pods' own. Raises Unknown."""
    ratio = value / target
    if current == 0:
        return Proposed(_ceil(ratio), value)
    if tolerances.hold(ratio):
        return Proposed(current, value)
    if not pods:
        raise Unknown(f"unable to calculate ready pods: {NO_PODS}")
    ready = sum(
        1 for p in pods if p.status.phase == "Running" and is_condition_true(p.status.conditions, "Ready")
    )
    return Proposed(_ceil(ratio * ready), value)


def by_value_of_each(value: int, target: int, there: int, tolerances: Tolerances) -> Proposed:
    """Of a metric that is not the pods' own, divided by the number of pods that are `there`."""
    replicas = there
    if not there or not tolerances.hold(value / (target * there)):
        replicas = _ceil(value / target)
    return Proposed(replicas, math.ceil(value / there) if there else 0)


def request_of(pod: Pod, container: str, resource: str) -> int:
    """Raises Unknown."""
    name = pod.metadata.name
    asked = pod.spec.resources.requests if pod.spec.resources is not None else {}
    if not container and any(is_supported_at_pod_level(one) for one in asked):
        whole = pod_requests(pod).get(resource)
        if whole is None:
            raise Unknown(f"missing pod-level request for {resource} in Pod {name}")
        return whole.milli_value()
    request = 0
    restarted = [one for one in pod.spec.init_containers if one.restart_policy == "Always"]
    for one in (*pod.spec.containers, *restarted):
        if container not in ("", one.name):
            continue
        asked_for = one.resources.requests.get(resource)
        if asked_for is None:
            raise Unknown(f"missing request for {resource} in container {one.name} of Pod {name}")
        request += asked_for.milli_value()
        if container:
            return request
    if container:
        raise Unknown(f"container {container} not found in Pod {name}")
    return request


class Change(NamedTuple):
    """So many pods more, or fewer, at a time."""

    replicas: int
    at: datetime


class History(msgspec.Struct):
    """What of the past of an autoscaler decides: what was proposed, and how its pods became more and fewer.
    Nothing of it outlives its use: the longest window, or period, is an hour."""

    proposed: list[Change] = []
    ups: list[Change] = []
    downs: list[Change] = []

    def begin(self, replicas: int, now: datetime) -> None:
        """The number of pods that there are is the first proposal."""
        if not self.proposed:
            self.proposed.append(Change(replicas, now))

    def scaled(self, spec: HorizontalPodAutoscalerSpec, before: int, after: int, now: datetime) -> None:
        if spec.behavior is None:
            return
        more = after > before
        rules, changes = (
            (spec.behavior.scale_up, self.ups) if more else (spec.behavior.scale_down, self.downs)
        )
        longest = max((one.period_seconds for one in (rules.policies if rules else None) or ()), default=0)
        _forget(changes, now - timedelta(seconds=longest))
        changes.append(Change(abs(after - before), now))


class Decision(NamedTuple):
    replicas: int
    able: Said
    """AbleToScale"""
    limited: Said
    """ScalingLimited"""


def decided(
    spec: HorizontalPodAutoscalerSpec, history: History, current: int, proposed: int, now: datetime
) -> Decision:
    """The number of pods to have now, where metrics propose `proposed`, which `history` is told."""
    least = 1 if spec.min_replicas is None else spec.min_replicas
    behavior = spec.behavior
    if behavior is None:
        stable = stabilized(history, proposed, now)
        able = READY if stable == proposed else DOWN_STABILIZED
        replicas, why = bounded(current, stable, least, spec.max_replicas)
    else:
        up, down = behavior.scale_up or HPAScalingRules(), behavior.scale_down or HPAScalingRules()
        stable = stabilized_by(history, up, down, current, proposed, now)
        able = READY if stable == proposed else UP_STABILIZED if proposed >= current else DOWN_STABILIZED
        replicas, why = limited_by(history, up, down, current, stable, least, spec.max_replicas, now)
    return Decision(replicas, ("True", *able), ("False" if replicas == stable else "True", *why))


def stabilized(history: History, proposed: int, now: datetime) -> int:
    since = now - DOWNSCALE_WINDOW
    _forget(history.proposed, since)
    highest = max((one.replicas for one in history.proposed), default=proposed)
    history.proposed.append(Change(proposed, now))
    return max(highest, proposed)


def stabilized_by(
    history: History, up: HPAScalingRules, down: HPAScalingRules, current: int, proposed: int, now: datetime
) -> int:
    up_since = now - timedelta(seconds=up.stabilization_window_seconds or 0)
    window = down.stabilization_window_seconds
    down_since = now - (DOWNSCALE_WINDOW if window is None else timedelta(seconds=window))
    lowest = min((one.replicas for one in history.proposed if one.at > up_since), default=proposed)
    highest = max((one.replicas for one in history.proposed if one.at > down_since), default=proposed)
    _forget(history.proposed, min(up_since, down_since))
    history.proposed.append(Change(proposed, now))
    return min(max(current, min(lowest, proposed)), max(highest, proposed))


def _forget(changes: list[Change], since: datetime) -> None:
    changes[:] = [one for one in changes if one.at >= since]


def bounded(current: int, wanted: int, least: int, most: int) -> tuple[int, tuple[str, str]]:
    fastest = int(max(UP_FACTOR * current, UP_LEAST))
    largest, why = (fastest, UP_LIMIT) if most > fastest else (most, TOO_MANY)
    if wanted < least:
        return least, TOO_FEW
    return (largest, why) if wanted > largest else (wanted, WITHIN)


def limited_by(
    history: History,
    up: HPAScalingRules,
    down: HPAScalingRules,
    current: int,
    wanted: int,
    least: int,
    most: int,
    now: datetime,
) -> tuple[int, tuple[str, str]]:
    if wanted > current:
        fastest = max(current, _farthest(history, up, current, now, up=True))
        largest, why = (fastest, UP_LIMIT) if most > fastest else (most, TOO_MANY)
        return (largest, why) if wanted > largest else (wanted, WITHIN)
    if wanted < current:
        fastest = min(current, _farthest(history, down, current, now, up=False))
        smallest, why = (fastest, DOWN_LIMIT) if least < fastest else (least, TOO_FEW)
        return (smallest, why) if wanted < smallest else (wanted, WITHIN)
    return wanted, WITHIN


def _farthest(history: History, rules: HPAScalingRules, current: int, now: datetime, *, up: bool) -> int:
    """The number of pods that the policies allow by now."""
    if rules.select_policy == "Disabled":
        return current
    allowed = []
    for policy in rules.policies or ():
        since = now - timedelta(seconds=policy.period_seconds)
        added, removed = (
            sum(one.replicas for one in changes if one.at > since) for changes in (history.ups, history.downs)
        )
        start = current - added + removed
        if policy.type == "Pods":
            allowed.append(start + policy.value if up else start - policy.value)
        elif up:
            allowed.append(_ceil(start * (1 + policy.value / 100)))
        else:
            allowed.append(int(start * (1 - policy.value / 100)))
    is_least_change = rules.select_policy == "Min"
    return min(allowed, default=current) if is_least_change == up else max(allowed, default=current)


def _ceil(number: float) -> int:
    return max(min(math.ceil(number), MOST), LEAST) if math.isfinite(number) else MOST


def _quotient(one: int, other: int) -> int:
    """As Go divides integers: towards zero."""
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient
