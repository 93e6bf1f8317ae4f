"""HorizontalPodAutoscalers: reads metrics and the scale of the target, and writes the scale and the status.

Every autoscaler has its turn each PERIOD, as in Kubernetes: a change of it waits for the next. Where there is
none, nothing happens. What is asked for follows, purely, from `computation.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.autoscaling.computation import (
    History,
    Proposed,
    Unknown,
    by_average,
    by_utilization,
    by_value,
    by_value_of_each,
    decided,
    tolerances_of,
)
from podling.controllers.autoscaling.metrics import Metrics
from podling.controllers.autoscaling.targets import Scaled, Targets
from podling.controllers.controller import Key
from podling.model.errors import StatusError
from podling.model.quantity import BINARY_SI, DECIMAL_SI, Quantity
from podling.model.selectors import SortedSelector, go_text
from podling.model.time import Clock, rfc3339
from podling.model.types.autoscaling import (
    ContainerResourceMetricStatus,
    ExternalMetricSource,
    ExternalMetricStatus,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerStatus,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    ObjectMetricSource,
    ObjectMetricStatus,
    PodsMetricSource,
    PodsMetricStatus,
    ResourceMetricStatus,
)
from podling.model.types.pod import Pod
from podling.process.waits import Turn

PERIOD = 15.0
"""Seconds from one turn to the next."""
COMPONENT = "horizontal-pod-autoscaler"
ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
GOT_SCALE = ("SucceededGetScale", "the HPA controller was able to get the target's current scale")
DISABLED = ("ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
NO_SELECTOR = ("InvalidSelector", "the HPA target's scale is missing a selector")
ABOVE, BELOW = (
    "Current number of replicas above Spec.MaxReplicas",
    "Current number of replicas below Spec.MinReplicas",
)

Conditions = list[HorizontalPodAutoscalerCondition]

log = logging.getLogger(__name__)


class _Asked(NamedTuple):
    """What one metric asks for: `what` names it for people."""

    proposed: Proposed
    what: str
    status: MetricStatus


class _NotAsked(Exception):
    """A metric that says nothing: `reason` names its condition, `why` is told in it, and `whole` to those who
    ask what came of all metrics."""

    def __init__(self, reason: str, why: str, whole: str) -> None:
        super().__init__(whole)
        self.reason, self.why, self.whole = reason, why, whole


class _Turn(msgspec.Struct):
    """One look at an autoscaler; `conditions` change on the way."""

    hpa: HorizontalPodAutoscaler
    now: datetime
    conditions: Conditions
    pods: Sequence[Pod] = ()
    selector: str = ""
    spec_replicas: int = 0
    there: int = 0
    selects: SortedSelector | None = None

    def say(self, type: str, status: str, reason: str, message: str) -> None:
        at = rfc3339(self.now)
        for i, one in enumerate(self.conditions):
            if one.type == type:
                since = one.last_transition_time if one.status == status else at
                self.conditions[i] = HorizontalPodAutoscalerCondition(type, status, since, reason, message)
                return
        self.conditions.append(HorizontalPodAutoscalerCondition(type, status, at, reason, message))


class Autoscalers:
    name = "horizontalpodautoscaler"

    def __init__(
        self,
        client: Client,
        autoscalers: Informer[HorizontalPodAutoscaler],
        pods: Informer[Pod],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._events, self._clock = client, events.by(COMPONENT), clock
        self._autoscalers, self._pods = autoscalers, pods
        self._metrics, self._targets = Metrics(client), Targets(client, clock)
        self._histories: dict[Key, History] = {}
        self._selectors: dict[Key, SortedSelector] = {}
        autoscalers.subscribe(self._changed)

    async def reconcile(self, key: Key) -> None:
        hpa = self._autoscalers.get(*key)
        if hpa is None:
            self._histories.pop(key, None)
            self._selectors.pop(key, None)
            return
        self.queue.add_after(key, PERIOD)
        try:
            await self._look(key, hpa)
        except (Unknown, StatusError) as error:
            log.warning("%s %s: %s", self.name, key, error)

    def _changed(self, old: HorizontalPodAutoscaler | None, new: HorizontalPodAutoscaler | None) -> None:
        one = new or old
        if one is not None:
            self.queue.add_after((one.metadata.namespace, one.metadata.name), PERIOD)

    async def _look(self, key: Key, hpa: HorizontalPodAutoscaler) -> None:
        """Raises Unknown, StatusError for what could not be done, which has been told."""
        turn = _Turn(hpa, self._clock.now(), list(hpa.status.conditions))
        try:
            target = await self._targets.read(hpa.spec.scale_target_ref, hpa.metadata.namespace)
        except (Unknown, StatusError) as error:
            self._events.warning(hpa, "FailedGetScale", str(error))
            message = f"the HPA controller was unable to get the target's current scale: {error}"
            turn.say(ABLE, "False", "FailedGetScale", message)
            await self._put(hpa, replace(hpa.status, conditions=turn.conditions))
            raise
        turn.say(ABLE, "True", *GOT_SCALE)
        scale, spec = target.scale, hpa.spec
        current = turn.spec_replicas = scale.spec.replicas
        turn.there = scale.status.replicas
        turn.selector, turn.selects = scale.status.selector, target.selector
        history = self._histories.setdefault(key, History())
        history.begin(current, turn.now)
        least = 1 if spec.min_replicas is None else spec.min_replicas
        statuses: list[MetricStatus] = []
        why, fault = "", ""
        if current == 0 and least != 0:
            wanted = 0
            turn.say(ACTIVE, "False", *DISABLED)
        elif current > spec.max_replicas:
            wanted, why = spec.max_replicas, ABOVE
        elif current < least:
            wanted, why = least, BELOW
        else:
            try:
                proposed, what, fault = await self._proposed(key, turn, statuses)
            except Unknown as error:
                await self._put(hpa, self._status(turn, statuses, hpa.status.desired_replicas))
                self._events.warning(hpa, "FailedComputeMetricsReplicas", str(error))
                raise
            why = f"{what} above target" if proposed > current else "All metrics below target"
            decision = decided(spec, history, current, proposed, turn.now)
            turn.say(ABLE, *decision.able)
            turn.say(LIMITED, *decision.limited)
            wanted = decision.replicas
        if wanted != current:
            await self._rescale(turn, target, wanted, why, statuses)
            history.scaled(spec, current, wanted, turn.now)
        await self._put(hpa, self._status(turn, statuses, wanted, scaled=wanted != current))
        if fault:
            raise Unknown(fault)

    async def _rescale(
        self, turn: _Turn, target: Scaled, wanted: int, why: str, statuses: list[MetricStatus]
    ) -> None:
        hpa = turn.hpa
        size = f"New size: {wanted}; reason: {why}"
        try:
            await self._targets.write(target, wanted)
        except StatusError as error:
            self._events.warning(hpa, "FailedRescale", f"{size}; error: {error}")
            message = f"the HPA controller was unable to update the target scale: {error}"
            turn.say(ABLE, "False", "FailedUpdateScale", message)
            await self._put(hpa, self._status(turn, statuses, hpa.status.desired_replicas))
            raise
        message = f"the HPA controller was able to update the target scale to {wanted}"
        turn.say(ABLE, "True", "SucceededRescale", message)
        self._events.normal(hpa, "SuccessfulRescale", size)

    def _status(
        self, turn: _Turn, metrics: list[MetricStatus], desired: int, *, scaled: bool = False
    ) -> HorizontalPodAutoscalerStatus:
        before = turn.hpa.status
        return HorizontalPodAutoscalerStatus(
            last_scale_time=rfc3339(turn.now) if scaled else before.last_scale_time,
            current_replicas=turn.spec_replicas,
            desired_replicas=desired,
            current_metrics=metrics,
            conditions=turn.conditions,
        )

    async def _put(self, hpa: HorizontalPodAutoscaler, status: HorizontalPodAutoscalerStatus) -> None:
        """Raises StatusError."""
        if status == hpa.status:
            return
        try:
            await self._client.update(replace(hpa, status=status), subresource="status")
        except StatusError as error:
            self._events.warning(hpa, "FailedUpdateStatus", str(error))
            raise

    async def _proposed(self, key: Key, turn: _Turn, statuses: list[MetricStatus]) -> tuple[int, str, str]:
        """How many pods the metrics ask for, which of them does, and what is wrong with others. Each has its
        status. Raises Unknown."""
        hpa = turn.hpa
        turn.pods = await self._selected(key, turn)
        best: _Asked | None = None
        faults: list[_NotAsked] = []
        for metric in hpa.spec.metrics:
            try:
                asked = await self._asked(turn, metric)
            except _NotAsked as fault:
                self._events.warning(hpa, fault.reason, fault.why)
                statuses.append(MetricStatus())
                faults.append(fault)
                continue
            statuses.append(asked.status)
            if (
                best is None
                or best.proposed.replicas == 0
                or asked.proposed.replicas > best.proposed.replicas
            ):
                best = asked
        told = ""
        if faults:
            count = f"{len(faults)} invalid out of {len(hpa.spec.metrics)}"
            told = f"invalid metrics ({count}), first error is: {faults[0].whole}"
        if best is None or (faults and best.proposed.replicas < turn.spec_replicas):
            message = f"the HPA was unable to compute the replica count: {faults[0].why}"
            turn.say(ACTIVE, "False", faults[0].reason, message)
            raise Unknown(told)
        message = f"the HPA was able to successfully calculate a replica count from {best.what}"
        turn.say(ACTIVE, "True", "ValidMetricFound", message)
        return best.proposed.replicas, best.what, told

    async def _selected(self, key: Key, turn: _Turn) -> list[Pod]:
        """The pods of the target, which are no other autoscaler's. Raises Unknown."""
        hpa = turn.hpa
        if turn.selects is None:
            self._events.warning(hpa, "SelectorRequired", "selector is required")
            turn.say(ACTIVE, "False", *NO_SELECTOR)
            raise Unknown("selector is required")
        selector = self._selectors[key] = turn.selects
        turns, pods = Turn(), []
        for pod in list(self._pods.of_namespace(key[0]).values()):
            if selector.matches(pod.metadata.labels):
                pods.append(pod)
            await turns.share()
        others = []
        for other, theirs in list(self._selectors.items()):
            if other[0] == key[0] and any(theirs.matches(pod.metadata.labels) for pod in pods):
                others.append(other)
            await turns.share()
        if len(others) > 1:
            listed = " ".join(f"{namespace}/{name}" for namespace, name in others)
            message = f"pods by selector {turn.selector} are controlled by multiple HPAs: [{listed}]"
            self._events.warning(hpa, "AmbiguousSelector", message)
            turn.say(ACTIVE, "False", "AmbiguousSelector", message)
            raise Unknown(message)
        return pods

    async def _asked(self, turn: _Turn, metric: MetricSpec) -> _Asked:
        """Raises _NotAsked."""
        kind = metric.type
        prefix = prefix_of(metric)
        try:
            if metric.resource is not None:
                of = metric.resource
                proposed, what = await self._of_resource(turn, of.name, "", of.target)
                shown = ResourceMetricStatus(of.name, _value(of.target, proposed, of.name))
                return _Asked(proposed, what, MetricStatus(kind, resource=shown))
            if metric.container_resource is not None:
                of_one = metric.container_resource
                proposed, what = await self._of_resource(turn, of_one.name, of_one.container, of_one.target)
                value = _value(of_one.target, proposed, of_one.name)
                of_container = ContainerResourceMetricStatus(of_one.name, value, of_one.container)
                return _Asked(proposed, what, MetricStatus(kind, container_resource=of_container))
            if metric.pods is not None:
                proposed = await self._of_pods(turn, metric.pods)
                of_pods = PodsMetricStatus(metric.pods.metric, _value(metric.pods.target, proposed))
                what = f"pods metric {metric.pods.metric.name}"
                return _Asked(proposed, what, MetricStatus(kind, pods=of_pods))
            if metric.object is not None:
                proposed, what = await self._of_object(turn, metric.object)
                value = _value(metric.object.target, proposed)
                of_object = ObjectMetricStatus(metric.object.metric, value, metric.object.described_object)
                return _Asked(proposed, what, MetricStatus(kind, object=of_object))
            if metric.external is not None:
                proposed = await self._of_external(turn, metric.external)
                named = metric.external.metric
                of_external = ExternalMetricStatus(named, _value(metric.external.target, proposed))
                what = f"external metric {named.name}({go_text(named.selector)})"
                return _Asked(proposed, what, MetricStatus(kind, external=of_external))
        except Unknown as error:
            raise _NotAsked(f"FailedGet{kind}Metric", str(error), f"{prefix}{error}") from error
        message = f'unknown metric source type "{kind}"'
        raise _NotAsked("InvalidMetricSourceType", message, message)

    async def _of_resource(
        self, turn: _Turn, resource: str, container: str, target: MetricTarget
    ) -> tuple[Proposed, str]:
        """Raises Unknown."""
        what = "usage" if target.average_value is not None else "utilization"
        tolerances, now, current = tolerances_of(turn.hpa.spec), turn.now, turn.spec_replicas
        try:
            try:
                measured = await self._metrics.of_pods(
                    turn.hpa.metadata.namespace, turn.selector, resource, container
                )
            except Unknown as error:
                raise Unknown(f"unable to get metrics for resource {resource}: {error}") from error
            if target.average_value is not None:
                wanted = target.average_value.milli_value()
                of_all = by_average(turn.pods, measured, resource, wanted, current, tolerances, now)
                return of_all, f"{resource} resource"
            percent = target.average_utilization or 0
            proposed = by_utilization(
                turn.pods, measured, resource, container, percent, current, tolerances, now
            )
        except Unknown as error:
            raise Unknown(f"failed to get {resource} {what}: {error}") from error
        of = " container resource" if container else " resource"
        return proposed, f"{resource}{of} utilization (percentage of request)"

    async def _of_pods(self, turn: _Turn, source: PodsMetricSource) -> Proposed:
        """Raises Unknown."""
        metric, target = source.metric, source.target.average_value or Quantity()
        try:
            measured = await self._metrics.custom_of_pods(
                turn.hpa.metadata.namespace, turn.selector, metric.name, metric.selector
            )
        except Unknown as error:
            raise Unknown(f"unable to get metric {metric.name}: {error}") from error
        tolerances = tolerances_of(turn.hpa.spec)
        return by_average(
            turn.pods, measured, "", target.milli_value(), turn.spec_replicas, tolerances, turn.now
        )

    async def _of_object(self, turn: _Turn, source: ObjectMetricSource) -> tuple[Proposed, str]:
        """Raises Unknown."""
        metric, target, described = source.metric, source.target, source.described_object
        namespace, tolerances = turn.hpa.metadata.namespace, tolerances_of(turn.hpa.spec)
        try:
            try:
                resource = (await self._targets.mapped(described))[0].qualified
            except (Unknown, StatusError) as error:
                why = f"unable to map kind {described.kind} to resource: {error}"
                raise Unknown(f"unable to fetch metrics from custom metrics API: {why}") from error
            value = await self._metrics.custom_of_object(
                namespace, resource, described.name, metric.name, metric.selector
            )
        except Unknown as error:
            # As Kubernetes puts it together.
            where = f"{described.kind} on {namespace} {described.name}"
            raise Unknown(f"unable to get metric {metric.name}: {where}/{error}") from error
        if target.value is not None:
            wanted = target.value.milli_value()
            proposed = by_value(turn.pods, value, wanted, turn.spec_replicas, tolerances)
            return proposed, f"{described.kind} metric {metric.name}"
        wanted = (target.average_value or Quantity()).milli_value()
        proposed = by_value_of_each(value, wanted, turn.there, tolerances)
        return proposed, f"external metric {metric.name}({go_text(metric.selector)})"

    async def _of_external(self, turn: _Turn, source: ExternalMetricSource) -> Proposed:
        """Raises Unknown."""
        metric, target = source.metric, source.target
        namespace, tolerances = turn.hpa.metadata.namespace, tolerances_of(turn.hpa.spec)
        try:
            value = await self._metrics.external(namespace, metric.name, metric.selector)
        except Unknown as error:
            where = f"{namespace}/{metric.name}/{go_text(metric.selector)}"
            raise Unknown(f"unable to get external metric {where}: {error}") from error
        if target.average_value is not None:
            return by_value_of_each(value, target.average_value.milli_value(), turn.there, tolerances)
        wanted = (target.value or Quantity()).milli_value()
        return by_value(turn.pods, value, wanted, turn.spec_replicas, tolerances)


def prefix_of(metric: MetricSpec) -> str:
    """What those are told before why a metric says nothing who ask what came of all."""
    if metric.resource is not None:
        return f"failed to get {metric.resource.name} resource metric value: "
    if metric.container_resource is not None:
        return f"failed to get {metric.container_resource.container} container metric value: "
    if metric.pods is not None:
        return "failed to get pods metric value: "
    if metric.object is not None:
        each = metric.object.target.average_value is not None
        inner = f"failed to get {metric.object.metric.name} object metric: " if each else ""
        return f"failed to get object metric value: {inner}"
    if metric.external is not None:
        name, each = metric.external.metric.name, metric.external.target.average_value is not None
        inner = f"failed to get {name} external metric" if each else f"failed to get external metric {name}"
        return f"failed to get {name} external metric value: {inner}: "
    return ""


def _value(target: MetricTarget, proposed: Proposed, resource: str = "") -> MetricValueStatus:
    """What was measured, as what is aimed at is given; memory in units of two."""
    form = BINARY_SI if resource == "memory" else DECIMAL_SI
    usage = Quantity.of_nanos(proposed.usage * 1_000_000, form)
    if target.value is not None:
        return MetricValueStatus(value=usage)
    return MetricValueStatus(average_value=usage, average_utilization=proposed.percent)
