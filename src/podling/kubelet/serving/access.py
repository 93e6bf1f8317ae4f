"""Who may ask the kubelet's server: the API server's word, by a SubjectAccessReview, as with webhook
authorization in Kubernetes; asked once, and kept for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from podling.client.client import Client
from podling.model.authorization import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from podling.model.time import Clock

MASTERS = "system:masters"
YES_IS_KEPT, NO_IS_KEPT = timedelta(minutes=5), timedelta(seconds=30)
KEPT = 1_000
"""Answers; all are forgotten when there are more."""


class Question(NamedTuple):
    user: str
    groups: tuple[str, ...]
    verb: str
    subresource: str


class NodeAccess:
    def __init__(self, client: Client, node_name: str, clock: Clock) -> None:
        self._client = client
        self._node = node_name
        self._clock = clock
        self._answers: dict[Question, tuple[bool, datetime]] = {}

    async def allows(
        self, user: str, groups: tuple[str, ...], verb: str, subresources: Sequence[str]
    ) -> bool:
        """Whether the user may `verb` any of these subresources of the node. Raises StatusError or OSError
        when the API server cannot say."""
        if MASTERS in groups:
            return True
        for subresource in subresources:
            if await self._answer(Question(user, groups, verb, subresource)):
                return True
        return False

    async def _answer(self, question: Question) -> bool:
        allowed, until = self._answers.get(question, (False, self._clock.now()))
        if self._clock.now() < until:
            return allowed
        allowed = await self._ask(question)
        if len(self._answers) >= KEPT:
            self._answers.clear()
        kept = YES_IS_KEPT if allowed else NO_IS_KEPT
        self._answers[question] = allowed, self._clock.now() + kept
        return allowed

    async def _ask(self, question: Question) -> bool:
        what = ResourceAttributes(
            verb=question.verb,
            version="v1",
            resource="nodes",
            subresource=question.subresource,
            name=self._node,
        )
        spec = SubjectAccessReviewSpec(
            resource_attributes=what, user=question.user, groups=list(question.groups)
        )
        return (await self._client.create(SubjectAccessReview(spec=spec))).status.allowed
