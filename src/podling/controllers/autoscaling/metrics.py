"""Reads metrics for autoscalers from the APIs that have them: `metrics.k8s.io`, `custom.metrics.k8s.io` and
`external.metrics.k8s.io`. Whatever goes wrong is an Unknown with Kubernetes' words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import quote

import msgspec

from podling.client.client import Client
from podling.controllers.autoscaling.computation import LONG_AGO, Measured, Unknown
from podling.model.errors import StatusError
from podling.model.quantity import Quantity
from podling.model.time import parse_duration, parse_time
from podling.model.types.meta import LabelSelector
from podling.model.types.metrics import PodMetrics

CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
DEFAULT_WINDOW = timedelta(minutes=1)
"""Of custom metrics that do not say theirs."""
BY_CODE = {
    404: "the server could not find the requested resource",
    503: "the server is currently unable to handle the request",
}
"""What a client of Kubernetes makes of an answer that is no Status."""


class _Object(msgspec.Struct):
    name: str = ""


class _Value(msgspec.Struct, rename="camel"):
    """Of a custom or external metric; `window` is v1beta1's name of `window_seconds`."""

    described_object: _Object = msgspec.field(default_factory=_Object)
    timestamp: str | None = None
    window_seconds: int | None = None
    window: int | None = None
    value: str | int | float = "0"

    def measured(self) -> Measured:
        seconds = self.window if self.window_seconds is None else self.window_seconds
        at = parse_time(self.timestamp) if self.timestamp else LONG_AGO
        window = DEFAULT_WINDOW if seconds is None else timedelta(seconds=seconds)
        return Measured(at, window, Quantity(self.value).milli_value())


class _Values(msgspec.Struct):
    items: list[_Value] = []


class _Version(msgspec.Struct):
    version: str


class _Group(msgspec.Struct):
    versions: list[_Version] = []


class Metrics:
    """Metrics as `client` may read them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def of_pods(
        self, namespace: str, selector: str, resource: str, container: str
    ) -> dict[str, Measured]:
        """By pod: all its containers, or the one that is named. Raises Unknown."""
        with _told("resource metrics API", "pods.metrics.k8s.io"):
            found = (await self._client.list(PodMetrics, namespace, label_selector=selector)).items
        if not found:
            raise Unknown("no metrics returned from resource metrics API")
        measured = {}
        for one in found:
            used = [c.usage.get(resource) for c in one.containers if container in ("", c.name)]
            known = [amount.milli_value() for amount in used if amount is not None]
            if known and len(known) == len(used):
                at = parse_time(one.timestamp) if one.timestamp else LONG_AGO
                measured[one.metadata.name] = Measured(at, parse_duration(one.window), sum(known))
        return measured

    async def custom_of_pods(
        self, namespace: str, selector: str, metric: str, labels: LabelSelector | None
    ) -> dict[str, Measured]:
        """By pod. Raises Unknown."""
        query = {"labelSelector": selector, "metricLabelSelector": selector_text(labels)}
        found = await self._custom(namespace, f"pods/*/{quote(metric, safe='')}", query, f"pods.{CUSTOM} *")
        if not found:
            raise Unknown("no metrics returned from custom metrics API")
        return {one.described_object.name: one.measured() for one in found}

    async def custom_of_object(
        self, namespace: str, resource: str, name: str, metric: str, labels: LabelSelector | None
    ) -> int:
        """`resource` is as in `deployments.apps`; that of the namespace itself is `namespaces`. Raises
        Unknown."""
        place = f"{resource}/{quote(name, safe='')}" if resource != "namespaces" else "metrics"
        query = {"metricLabelSelector": selector_text(labels)}
        path = f"{place}/{quote(metric, safe='')}"
        what = f"{resource}.{CUSTOM} {name}" if resource != "namespaces" else f"metrics.{CUSTOM} {metric}"
        found = await self._custom(namespace, path, query, what)
        if len(found) != 1:
            why = f"the custom metrics API server returned {len(found)} results when we asked for exactly one"
            raise Unknown(f"unable to fetch metrics from custom metrics API: {why}")
        return found[0].measured().value

    async def external(self, namespace: str, metric: str, labels: LabelSelector | None) -> int:
        """The sum of all that match. Raises Unknown."""
        path = f"/apis/{EXTERNAL}/v1beta1/namespaces/{namespace}/{quote(metric, safe='')}"
        with _told("external metrics API", f"{metric}.{EXTERNAL}"):
            body = await self._client.raw(path, _said({"labelSelector": selector_text(labels)}))
            found = msgspec.json.decode(body, type=_Values).items
        if not found:
            raise Unknown("no metrics returned from external metrics API")
        return sum(one.measured().value for one in found)

    async def _custom(self, namespace: str, path: str, query: Mapping[str, str], what: str) -> list[_Value]:
        with _told("custom metrics API", what):
            try:
                group = msgspec.json.decode(await self._client.raw(f"/apis/{CUSTOM}"), type=_Group)
            except StatusError as error:
                if error.code != 404:
                    raise
                group = _Group()
            served = [one.version for one in group.versions if one.version in CUSTOM_VERSIONS]
            if not served:
                why = f"no custom metrics API ({CUSTOM}) registered"
                raise Unknown(f"unable to fetch metrics from custom metrics API: {why}")
            root = f"/apis/{CUSTOM}/{served[0]}/namespaces/{namespace}"
            return msgspec.json.decode(
                await self._client.raw(f"{root}/{path}", _said(query)), type=_Values
            ).items


def _said(query: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}


@contextmanager
def _told(api: str, what: str) -> Iterator[None]:
    """Raises Unknown for what a request, or its answer, fails of."""
    try:
        yield
    except StatusError as error:
        generic = BY_CODE.get(error.code) if not error.reason else None
        why = f"{generic} (get {what})" if generic else error.message
        raise Unknown(f"unable to fetch metrics from {api}: {why}") from error
    except (ValueError, OSError) as error:
        raise Unknown(f"unable to fetch metrics from {api}: {error}") from error


def selector_text(selector: LabelSelector | None) -> str:
    """As a query has it."""
    if selector is None:
        return ""
    terms = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    for one in selector.match_expressions:
        values = ",".join(sorted(one.values))
        text = {
            "In": f"{one.key} in ({values})",
            "NotIn": f"{one.key} notin ({values})",
            "Exists": one.key,
            "DoesNotExist": f"!{one.key}",
        }
        terms.append((one.key, text[one.operator]))
    return ",".join(text for _, text in sorted(terms))
