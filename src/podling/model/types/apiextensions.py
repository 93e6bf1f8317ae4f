"""apiextensions.k8s.io/v1: CustomResourceDefinition. podling lists none and lets nobody create one."""

from __future__ import annotations

from typing import ClassVar

from podling.model.types.meta import KubeObject


class CustomResourceDefinition(KubeObject):
    KIND: ClassVar[str] = "CustomResourceDefinition"
    API_VERSION: ClassVar[str] = "apiextensions.k8s.io/v1"
