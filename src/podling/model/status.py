"""meta/v1 Status: the answer that is no object. Mostly it says what went wrong (`podling.model.errors`)."""

from __future__ import annotations

from typing import ClassVar

from podling.model.base import Object, Part, always
from podling.model.fields import Int32
from podling.model.meta import ListMeta


class StatusCause(Part):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Part):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: Int32 = 0


class Status(Object):
    KIND: ClassVar[str] = "Status"
    API_VERSION: ClassVar[str] = "v1"

    metadata: ListMeta = always(ListMeta)
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: Int32 = 0
