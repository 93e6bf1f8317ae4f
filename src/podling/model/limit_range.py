"""core/v1: LimitRange."""

from __future__ import annotations

from typing import ClassVar

from podling.model.base import Part, always
from podling.model.container import ResourceList
from podling.model.meta import KubeObject


class LimitRangeItem(Part):
    type: str = always(str)
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(Part):
    limits: list[LimitRangeItem] = always(list)


class LimitRange(KubeObject):
    KIND: ClassVar[str] = "LimitRange"
    API_VERSION: ClassVar[str] = "v1"

    spec: LimitRangeSpec = always(LimitRangeSpec)
