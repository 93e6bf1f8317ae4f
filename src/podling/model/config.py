"""core/v1: ConfigMap and Secret. Binary values are bytes here and base64 on the wire."""

from __future__ import annotations

from typing import ClassVar

from podling.model.meta import KubeObject


class ConfigMap(KubeObject):
    KIND: ClassVar[str] = "ConfigMap"
    API_VERSION: ClassVar[str] = "v1"

    immutable: bool | None = None
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}


class Secret(KubeObject):
    KIND: ClassVar[str] = "Secret"
    API_VERSION: ClassVar[str] = "v1"

    immutable: bool | None = None
    data: dict[str, bytes] = {}
    string_data: dict[str, str] = {}
    type: str = ""
