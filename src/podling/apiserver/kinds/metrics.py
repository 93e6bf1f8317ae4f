"""What nodes and pods use: kinds of metrics.k8s.io, which are measured when somebody asks and never stored.

Discovery, selectors and tables are those of the metrics server of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import reduce
from operator import add
from typing import Any, Generic, TypeVar

from podling.apiserver.kinds.columns import NAME
from podling.apiserver.kinds.kind import Column, Kind
from podling.model.quantity import Quantity
from podling.model.scheme import resource_of
from podling.model.types.meta import KubeObject
from podling.model.types.metrics import NodeMetrics, PodMetrics

T = TypeVar("T", bound=KubeObject)

CPU, MEMORY = "cpu", "memory"


class Measured(Kind[T], Generic[T]):
    verbs = ("get", "list")
    columns = (
        NAME._replace(description="Name of the resource"),
        Column(CPU, format="quantity"),
        Column(MEMORY, format="quantity"),
        Column("Window", format="duration"),
    )


class MeasuredNodes(Measured[NodeMetrics]):
    resource = resource_of(NodeMetrics)

    def row(self, obj: NodeMetrics, now: datetime) -> list[Any]:
        return [obj.metadata.name, *_sums([obj.usage]), obj.window]


class MeasuredPods(Measured[PodMetrics]):
    resource = resource_of(PodMetrics)

    def row(self, obj: PodMetrics, now: datetime) -> list[Any]:
        return [obj.metadata.name, *_sums(one.usage for one in obj.containers), obj.window]


def _sums(usages: Iterable[Mapping[str, Quantity]]) -> list[str]:
    every = list(usages)
    return [str(reduce(add, (one[name] for one in every if name in one))) for name in (CPU, MEMORY)]


MEASURED: tuple[Kind[Any], ...] = (MeasuredNodes(), MeasuredPods())
