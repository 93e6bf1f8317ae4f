"""What the controllers have to do and how often it failed, under the names of client-go's work queues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from podling.controllers.controller import Controller

LABELS = ["name"]


def queue_metrics(controllers: Iterable[Controller[Any]]) -> Iterable[Metric]:
    depth = GaugeMetricFamily("workqueue_depth", "Keys that wait to be worked on.", labels=LABELS)
    adds = CounterMetricFamily("workqueue_adds_total", "Keys that were added.", labels=LABELS)
    retries = CounterMetricFamily("workqueue_retries_total", "Keys that failed.", labels=LABELS)
    for controller in controllers:
        queue, name = controller.queue, [controller.name]
        depth.add_metric(name, len(queue))
        adds.add_metric(name, queue.adds)
        retries.add_metric(name, queue.retries)
    return depth, adds, retries
