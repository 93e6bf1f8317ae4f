"""Counts of what was asked and answered, as `apiserver_request_total` names them."""

from __future__ import annotations

from collections import Counter

from podling.apiserver.context import RequestContext

Labels = tuple[str, str, str, str, str, int]
"""Verb, group, version, resource, subresource, code. Non-resource paths have their verb alone."""


class RequestCounts:
    """An observer of the pipeline."""

    def __init__(self) -> None:
        self.total: Counter[Labels] = Counter()

    def completed(self, context: RequestContext, code: int) -> None:
        info = context.info
        self.total[info.verb, info.api_group, info.api_version, info.resource, info.subresource, code] += 1
