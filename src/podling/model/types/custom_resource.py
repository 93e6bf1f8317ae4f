"""apiextensions.k8s.io/v1: CustomResourceDefinition. None can be made yet: it is what every object is."""

from __future__ import annotations

from typing import ClassVar

from podling.model.types.meta import KubeObject


class CustomResourceDefinition(KubeObject):
    KIND: ClassVar[str] = "CustomResourceDefinition"
    API_VERSION: ClassVar[str] = "apiextensions.k8s.io/v1"
