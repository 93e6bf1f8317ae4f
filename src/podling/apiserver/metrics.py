"""Counts of what was asked and answered, as `apiserver_request_total` names them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from podling.apiserver.context import RequestContext


class RequestLabels(NamedTuple):
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    code: int


class RequestCounts:
    """An observer of the pipeline. Non-resource paths are counted under their verb alone."""

    def __init__(self) -> None:
        self.total: Counter[RequestLabels] = Counter()

    def completed(self, context: RequestContext, code: int) -> None:
        info = context.info
        labels = RequestLabels(
            info.verb.upper(), info.api_group, info.api_version, info.resource, info.subresource, code
        )
        self.total[labels] += 1
