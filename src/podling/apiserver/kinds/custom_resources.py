"""CustomResourceDefinitions can be listed, and there are none.

kubectl lists them before it says that a kind is unknown; without an answer it would report a broken server.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.kinds.columns import NAME
from podling.apiserver.kinds.kind import Column, Kind
from podling.model.scheme import Resource
from podling.model.types.apiextensions import CustomResourceDefinition


class CustomResourceDefinitions(Kind[CustomResourceDefinition]):
    resource = Resource(
        group="apiextensions.k8s.io",
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        singular="customresourcedefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        type=CustomResourceDefinition,
    )
    verbs = ("get", "list", "watch")
    columns = (NAME, Column("Created At", "date", description="When it was created."))

    def row(self, obj: CustomResourceDefinition, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.metadata.creation_timestamp]
