"""The metrics of authorizers and of the webhooks among them, under Kubernetes' names."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.apiserver.authz.authorizers import Decision
from podling.apiserver.authz.configuration import WEBHOOK
from podling.apiserver.authz.modes import Chosen

PREFIX = "apiserver_authorization_"
DECISIONS = {Decision.ALLOW: "allowed", Decision.DENY: "denied"}
RELOADS = {True: "success", False: "failure"}


def authorization_metrics(chosen: Chosen) -> Iterable[Metric]:
    decisions = CounterMetricFamily(
        f"{PREFIX}decisions_total", "What authorizers have decided.", labels=["type", "name", "decision"]
    )
    for one in chosen.authorizers:
        for decision, named in DECISIONS.items():
            if one.decisions[decision]:
                decisions.add_metric([one.step.type, one.step.name, named], one.decisions[decision])
    yield decisions
    reloads = CounterMetricFamily(
        f"{PREFIX}config_controller_automatic_reloads_total",
        "How often the configuration has changed.",
        labels=["status"],
    )
    for is_good, named in RELOADS.items():
        if chosen.reloads[is_good]:
            reloads.add_metric([named], chosen.reloads[is_good])
    yield reloads
    if chosen.digest:
        info = GaugeMetricFamily(
            f"{PREFIX}config_controller_last_config_info", "The configuration in force.", labels=["hash"]
        )
        info.add_metric([chosen.digest], 1)
        yield info
    yield from _of_webhooks(chosen)


def _of_webhooks(chosen: Chosen) -> Iterable[Metric]:
    asked = CounterMetricFamily(
        f"{PREFIX}webhook_evaluations_total", "Questions to webhooks.", labels=["name", "result"]
    )
    seconds = HistogramMetricFamily(
        f"{PREFIX}webhook_duration_seconds", "Until they had answered.", labels=["name", "result"]
    )
    opened = CounterMetricFamily(
        f"{PREFIX}webhook_evaluations_fail_open_total",
        "Failures after which the next authorizer was asked.",
        labels=["name", "result"],
    )
    excluded = CounterMetricFamily(
        f"{PREFIX}match_condition_exclusions_total",
        "Questions that were none for a webhook.",
        labels=["type", "name"],
    )
    failed = CounterMetricFamily(
        f"{PREFIX}match_condition_evaluation_errors_total",
        "Conditions without a value.",
        labels=["type", "name"],
    )
    matching = HistogramMetricFamily(
        f"{PREFIX}match_condition_evaluation_seconds", "Of conditions.", labels=["type", "name"]
    )
    for settings, webhook in chosen.webhooks.items():
        name, counts = settings.name, webhook.metrics
        for result, count in counts.asked.items():
            asked.add_metric([name, result], count)
        for result, histogram in counts.seconds.items():
            seconds.add_metric([name, result], histogram.buckets(), histogram.total)
        for result, count in counts.opened.items():
            opened.add_metric([name, result], count)
        if counts.excluded:
            excluded.add_metric([WEBHOOK, name], counts.excluded)
        if counts.unmatched:
            failed.add_metric([WEBHOOK, name], counts.unmatched)
        if any(counts.matching.counts):
            matching.add_metric([WEBHOOK, name], counts.matching.buckets(), counts.matching.total)
    yield from (asked, seconds, opened, excluded, failed, matching)
