"""core/v1: ResourceQuota."""

from __future__ import annotations

from typing import ClassVar

from podling.model.base import Part, always
from podling.model.container import ResourceList
from podling.model.meta import KubeObject


class ScopedResourceSelectorRequirement(Part):
    scope_name: str = always(str)
    operator: str = always(str)
    values: list[str] = []


class ScopeSelector(Part):
    ATOMIC: ClassVar[bool] = True

    match_expressions: list[ScopedResourceSelectorRequirement] = []


class ResourceQuotaSpec(Part):
    hard: ResourceList = {}
    scopes: list[str] = []
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Part):
    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(KubeObject):
    KIND: ClassVar[str] = "ResourceQuota"
    API_VERSION: ClassVar[str] = "v1"

    spec: ResourceQuotaSpec = always(ResourceQuotaSpec)
    status: ResourceQuotaStatus = always(ResourceQuotaStatus)
