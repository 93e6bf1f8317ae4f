"""The work of the scheduler in numbers."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric

from podling.scheduler.metrics import BOUND, REFUSED, Attempts, scheduler_metrics
from podling.scheduler.queue import ACTIVE, PARKED, TAKEN


def told(metric: Metric) -> dict[tuple[str, ...], float]:
    return {(sample.name, *sample.labels.values()): sample.value for sample in metric.samples}


def test_what_was_tried_and_what_waits() -> None:
    attempts = Attempts(preemptions=3)
    attempts.victims.observe(2)
    for result, seconds in ((BOUND, 0.003), (BOUND, 0.001), (REFUSED, 100.0)):
        attempts.ended(result, seconds)
    places = {ACTIVE: 1, PARKED: 2, TAKEN: 4}
    found = {
        key: n
        for m in scheduler_metrics("default-scheduler", attempts, places, 5)
        for key, n in told(m).items()
    }
    name = "scheduler_scheduling_attempt_duration_seconds"
    expected = {
        ("scheduler_schedule_attempts_total", "scheduled", "default-scheduler"): 2,
        ("scheduler_schedule_attempts_total", "unschedulable", "default-scheduler"): 1,
        (f"{name}_bucket", "scheduled", "default-scheduler", "0.001"): 1,
        (f"{name}_bucket", "scheduled", "default-scheduler", "0.004"): 2,
        (f"{name}_sum", "scheduled", "default-scheduler"): 0.004,
        (f"{name}_count", "unschedulable", "default-scheduler"): 1,
        (f"{name}_bucket", "unschedulable", "default-scheduler", "16.384"): 0,
        ("scheduler_pending_pods", "active"): 1,
        ("scheduler_pending_pods", "backoff"): 0,
        ("scheduler_pending_pods", "unschedulable"): 2,
        ("scheduler_pending_pods", "gated"): 5,
        ("scheduler_preemption_attempts_total",): 3,
        ("scheduler_preemption_victims_sum",): 2,
    }
    assert {key: found[key] for key in expected} == expected
