"""R-SYS-8: autoscalers write the scale of their target and say why, or why not. What they ask for, and every
message, is compared with Kubernetes' controller in `tests/peer/test_autoscalers.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.autoscaling.autoscaler import Autoscalers
from podling.controllers.autoscaling.computation import Measured, Unknown
from podling.controllers.autoscaling.metrics import Metrics, selector_text
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.selectors import go_text
from podling.model.types.apps import Deployment
from podling.model.types.autoscaling import HorizontalPodAutoscaler
from podling.model.types.meta import LabelSelector
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

KEY = ("ns", "h")
LABELS = {"app": "web"}


class Use:
    """What each pod uses, in place of what the API of metrics tells."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cpu: dict[str, int] = {}

        async def of_pods(_: Metrics, namespace: str, selector: str, resource: str, container: str) -> Any:
            assert (namespace, selector, resource) == ("ns", "app=web", "cpu")
            if not self.cpu:
                raise Unknown("no metrics returned from resource metrics API")
            now = datetime(2030, 1, 1, tzinfo=UTC)
            return {name: Measured(now, timedelta(seconds=15), value) for name, value in self.cpu.items()}

        monkeypatch.setattr(Metrics, "of_pods", of_pods)


@pytest.fixture
async def use(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Use:
    """A deployment of two ready pods, and an autoscaler `h` of it that had its first turn."""
    use = Use(monkeypatch)
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    await cluster.make(Deployment, "web", spec=spec, status={"replicas": 2})
    for name in ("p", "q"):
        containers = [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
        status = {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }
        await cluster.pod(name, metadata={"labels": LABELS}, spec={"containers": containers}, status=status)
    await make(cluster, "h")
    await cluster.run(
        Autoscalers(
            cluster.account("horizontal-pod-autoscaler"),
            cluster.informers.of(HorizontalPodAutoscaler),
            cluster.informers.of(Pod),
            cluster.events,
            cluster.clock,
        )
    )
    return use


async def make(cluster: Cluster, name: str, kind: str = "Deployment", target_name: str = "web") -> None:
    target = {"apiVersion": "apps/v1", "kind": kind, "name": target_name}
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    metrics = [{"type": "Resource", "resource": metric}]
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10, "metrics": metrics}
    await cluster.make(HorizontalPodAutoscaler, name, spec=spec)


async def seen(cluster: Cluster, name: str = "h") -> tuple[HorizontalPodAutoscaler, dict[str, str]]:
    """With the reason of each condition."""
    hpa = await cluster.client.get(HorizontalPodAutoscaler, name, "ns")
    return hpa, {one.type: one.reason for one in hpa.status.conditions}


async def test_it_has_its_turn_each_period_and_none_before(cluster: Cluster, use: Use) -> None:
    hpa, reasons = await seen(cluster)
    assert not reasons and not cluster.events.said
    use.cpu = {"p": 100, "q": 100}
    await cluster.reconcile(KEY)
    hpa, reasons = await seen(cluster)
    assert reasons == {
        "AbleToScale": "SucceededRescale",
        "ScalingActive": "ValidMetricFound",
        "ScalingLimited": "DesiredWithinRange",
    }
    assert (hpa.status.current_replicas, hpa.status.desired_replicas) == (2, 4)
    assert hpa.status.last_scale_time and hpa.status.current_metrics[0].resource is not None
    assert (await cluster.client.get(Deployment, "web", "ns")).spec.replicas == 4
    why = "cpu resource utilization (percentage of request) above target"
    assert cluster.events.said == [f"SuccessfulRescale: New size: 4; reason: {why}"]


async def test_what_stays_the_same_is_not_written(cluster: Cluster, use: Use) -> None:
    use.cpu = {"p": 50, "q": 50}
    await cluster.reconcile(KEY)
    before, _ = await seen(cluster)
    cluster.clock.move(15)
    await cluster.reconcile(KEY)
    after, reasons = await seen(cluster)
    assert after.metadata.resource_version == before.metadata.resource_version
    assert reasons["AbleToScale"] == "ReadyForNewScale"


async def test_a_condition_keeps_its_time_while_its_status_does(cluster: Cluster, use: Use) -> None:
    await cluster.reconcile(KEY)
    hpa, reasons = await seen(cluster)
    assert reasons == {"AbleToScale": "SucceededGetScale", "ScalingActive": "FailedGetResourceMetric"}
    first = {one.type: one.last_transition_time for one in hpa.status.conditions}
    use.cpu = {"p": 50, "q": 50}
    cluster.clock.move(60)
    await cluster.reconcile(KEY)
    hpa, _ = await seen(cluster)
    second = {one.type: one.last_transition_time for one in hpa.status.conditions}
    assert second["AbleToScale"] == first["AbleToScale"]
    assert second["ScalingActive"] != first["ScalingActive"]


async def test_pods_of_two_autoscalers_are_nobodys(cluster: Cluster, use: Use) -> None:
    use.cpu = {"p": 50, "q": 50}
    await cluster.reconcile(KEY)
    await make(cluster, "i")
    await cluster.reconcile(("ns", "i"))
    _, reasons = await seen(cluster, "i")
    assert reasons["ScalingActive"] == "AmbiguousSelector"
    await cluster.client.delete(HorizontalPodAutoscaler, "h", "ns")
    await cluster.reconcile(KEY)
    await cluster.reconcile(("ns", "i"))
    _, reasons = await seen(cluster, "i")
    assert reasons["ScalingActive"] == "ValidMetricFound"


async def test_a_scale_that_is_not_written_is_told(
    cluster: Cluster, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise StatusError(403, "Forbidden", "no")

    monkeypatch.setattr("podling.controllers.autoscaling.targets.Targets.write", refuse)
    use.cpu = {"p": 100, "q": 100}
    await cluster.reconcile(KEY)
    hpa, reasons = await seen(cluster)
    assert reasons["AbleToScale"] == "FailedUpdateScale"
    assert hpa.status.desired_replicas == 0 and not hpa.status.last_scale_time
    assert cluster.events.said[0].startswith("FailedRescale: New size: 4; reason: cpu resource utilization")


async def test_a_target_that_is_not_there_is_told(cluster: Cluster, use: Use) -> None:
    await make(cluster, "none", target_name="none")
    await cluster.reconcile(("ns", "none"))
    hpa, _ = await seen(cluster, "none")
    assert 'deployments.apps "none" not found' in hpa.status.conditions[0].message
    await make(cluster, "odd", kind="Odd")
    await cluster.reconcile(("ns", "odd"))
    hpa, _ = await seen(cluster, "odd")
    assert 'no matches for kind "Odd" in group "apps"' in hpa.status.conditions[0].message


@pytest.mark.parametrize(
    ("selector", "query", "go"),
    [
        (None, "", "nil"),
        (
            {},
            "",
            "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}",
        ),
        (
            {
                "matchLabels": {"b": "c"},
                "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["y", "x"]}],
            },
            "a notin (x,y),b=c",
            "&LabelSelector{MatchLabels:map[string]string{b: c,},MatchExpressions:[]LabelSelectorRequirement"
            "{LabelSelectorRequirement{Key:a,Operator:NotIn,Values:[y x],},},}",
        ),
    ],
)
def test_selectors_of_metrics(selector: Any, query: str, go: str) -> None:
    read = from_data(selector, LabelSelector) if selector is not None else None
    assert (selector_text(read), go_text(read)) == (query, go)
