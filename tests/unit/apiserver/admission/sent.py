"""A request behind a write, of which there is nothing to tell but what plugins tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from podling.apiserver.admission.forms import Form


class Itself(msgspec.Struct):
    forms: Sequence[Form] = ()
    options: Mapping[str, Any] | None = None
    warnings: list[str] = []
    annotations: dict[str, str] = {}
