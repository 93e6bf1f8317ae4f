"""An authorizer that asks another server: it sends a SubjectAccessReview for what is not known yet, and keeps
the answer for a while.

Before that, match conditions may say that a question is none for that server. What fails is refused, or left
to the next authorizer, as the webhook's failure policy says; why is told in `Opinion.error`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Protocol, TypeVar

import msgspec

from podling.apiserver.authz.authorizers import NO_OPINION, Decision, ListedRules, Opinion, Unanswered, heard
from podling.apiserver.authz.configuration import WebhookSettings
from podling.apiserver.request.request import RequestInfo, Selecting, User
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.types.authorization import SubjectAccessReview, SubjectAccessReviewStatus
from podling.process.histogram import Histogram

LONGEST = 60.0
"""Seconds for all attempts at one question: as long as a request may take."""
ATTEMPTS, FIRST_WAIT, GROWTH = 5, 0.5, 1.5
REMEMBERED = 8192
LONGEST_REMEMBERED = 10_000
"""Characters of a question whose answer is kept."""
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
UNLISTED = ListedRules([], ["webhook authorizer does not support user rule resolution"], incomplete=True)
KIND = SubjectAccessReview.KIND
BOTH = "webhook subject access review returned both allow and deny response"

Said = TypeVar("Said")
Send = Callable[[bytes], Awaitable[bytes]]
"""POST of a SubjectAccessReview: the body of the answer. Raises WebhookFailure."""


class WebhookFailure(Exception):
    """The webhook did not answer as it should; the message is Go's. `again`: it may be tried once more;
    `code`: of its answer, 0 without one."""

    def __init__(self, message: str, *, again: bool = False, late: bool = False, code: int = 0) -> None:
        super().__init__(message)
        self.again, self.late, self.code = again, late, code


class MatchError(Exception):
    """A condition has no value, and none is false."""


class Conditions(Protocol):
    """What must hold of the spec of a review for a webhook to be asked: `authz/conditions.py`."""

    def met(self, spec: Mapping[str, Any]) -> bool | None:
        """None if it takes too long to tell on the loop. Raises MatchError."""
        ...

    async def met_aside(self, spec: Mapping[str, Any]) -> bool:
        """Raises MatchError."""
        ...


class QuestionCounts:
    """What one webhook was asked, by result, and how long that took."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.seconds: dict[str, Histogram] = {}
        self.opened: Counter[str] = Counter()
        """Failures after which the next authorizer was asked."""
        self.excluded = 0
        self.unmatched = 0
        """Questions that it was not about, and such whose conditions failed."""
        self.matching = Histogram(BUCKETS)

    def record(self, result: str, seconds: float) -> None:
        self.asked[result] += 1
        self.seconds.setdefault(result, Histogram(BUCKETS)).observe(seconds)


class WebhookAuthorizer:
    """`now` is a clock in seconds that never goes back."""

    def __init__(
        self, settings: WebhookSettings, send: Send, now: Callable[[], float], conditions: Conditions | None
    ) -> None:
        self.settings = settings
        self.metrics = QuestionCounts()
        self._send, self._now, self._conditions = send, now, conditions
        self._known: OrderedDict[bytes, tuple[float, Opinion]] = OrderedDict()

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        """Raises Unanswered."""
        question = (self.settings, user, info)
        if (told := heard(question)) is not None:
            return told
        spec = spec_of(user, info)
        is_met: bool | None = True
        if self._conditions is not None:
            began = perf_counter()
            try:
                is_met = self._conditions.met(spec)
            except MatchError as error:
                return self._unmatched(error)
            finally:
                self.metrics.matching.observe(perf_counter() - began)
        if is_met is False:
            self.metrics.excluded += 1
            return NO_OPINION
        if is_met and (opinion := self._recall(_key(spec))) is not None:
            return opinion
        raise Unanswered(question, partial(self._ask, spec, is_met=is_met))

    def rules_of(self, user: User, namespace: str) -> ListedRules:
        return UNLISTED

    def _recall(self, key: bytes) -> Opinion | None:
        # Nothing is changed here: expressions ask from a thread.
        until, opinion = self._known.get(key, (0.0, NO_OPINION))
        return opinion if self._now() < until else None

    async def _ask(self, spec: Mapping[str, Any], *, is_met: bool | None) -> Opinion:
        if is_met is None:
            assert self._conditions is not None
            try:
                is_met = await self._conditions.met_aside(spec)
            except MatchError as error:
                return self._unmatched(error)
            if not is_met:
                self.metrics.excluded += 1
                return NO_OPINION
            if (known := self._recall(_key(spec))) is not None:
                return known
        began, result = perf_counter(), "success"
        try:
            async with asyncio.timeout(LONGEST):
                body, version = body_of(spec, self.settings.version), self.settings.version
                status = await repeated(lambda: self._send(body), lambda said: status_of(said, version))
        except TimeoutError:
            result = "timeout"
            return self._failed("context deadline exceeded", result)
        except WebhookFailure as error:
            result = "timeout" if error.late else "error"
            return self._failed(str(error), result)
        finally:
            self.metrics.record(result, perf_counter() - began)
        opinion = opinion_of_status(status)
        ttl = self.settings.allowed_ttl if status.allowed else self.settings.other_ttl
        if ttl and _length(spec) < LONGEST_REMEMBERED:
            self._known[_key(spec)] = self._now() + ttl, opinion
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return opinion

    def _unmatched(self, error: MatchError) -> Opinion:
        self.metrics.unmatched += 1
        return Opinion(self._on_error, "", str(error))

    def _failed(self, why: str, result: str) -> Opinion:
        if not self.settings.denies:
            self.metrics.opened[result] += 1
        return Opinion(self._on_error, "", why)

    @property
    def _on_error(self) -> Decision:
        return Decision.DENY if self.settings.denies else Decision.NO_OPINION


async def repeated(
    send: Callable[[], Awaitable[bytes]], read: Callable[[bytes], Said], wait: float = FIRST_WAIT
) -> Said:
    """What `read` makes of an answer; what fails in passing is tried again, at first after `wait` seconds.
    Raises WebhookFailure."""
    for left in reversed(range(ATTEMPTS)):
        try:
            return read(await send())
        except WebhookFailure as error:
            if not error.again or not left:
                raise
        await asyncio.sleep(wait)
        wait *= GROWTH
    raise AssertionError


def status_of(body: bytes, version: str) -> SubjectAccessReviewStatus:
    """What an answer says. Raises WebhookFailure."""
    try:
        said = json.decode_data(body)
    except StatusError as error:
        raise WebhookFailure(f"couldn't get version/kind; json parse error: {error.message}") from error
    if said is None:
        return SubjectAccessReviewStatus()
    if not isinstance(said, dict):
        raise WebhookFailure("couldn't get version/kind; json parse error: it is no object")
    kind, spoken = said.get("kind") or KIND, str(said.get("apiVersion") or "").rpartition("/")[2]
    if kind != KIND or spoken not in ("", version):
        raise WebhookFailure(f"converting ({spoken}.{kind}) to ({version}.{KIND}): unknown conversion")
    try:
        return json.from_data(said, SubjectAccessReview).status
    except StatusError as error:
        raise WebhookFailure(f"{error.__cause__ or error.message}") from error


def opinion_of_status(status: SubjectAccessReviewStatus) -> Opinion:
    if status.denied:
        return Opinion(Decision.DENY, status.reason, BOTH if status.allowed else "")
    return Opinion(Decision.ALLOW if status.allowed else Decision.NO_OPINION, status.reason)


def spec_of(user: User, info: RequestInfo) -> Mapping[str, Any]:
    """The spec of a SubjectAccessReview, in Go's order, without what is empty."""
    asked: dict[str, Any]
    if info.is_resource_request:
        asked = {
            "namespace": info.namespace,
            "verb": info.verb,
            "group": info.api_group,
            "version": info.api_version,
            "resource": info.resource,
            "subresource": info.subresource,
            "name": info.name,
            "fieldSelector": _selector(info.fields),
            "labelSelector": _selector(info.labels),
        }
        about = "resourceAttributes"
    else:
        asked, about = {"path": info.path, "verb": info.verb}, "nonResourceAttributes"
    who = {
        "user": user.name,
        "groups": user.groups,
        "extra": {key: list(values) for key, values in sorted(user.extra)},
        "uid": user.uid,
    }
    return {about: _filled(asked), **_filled(who)}


def _filled(said: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if value}


def _selector(requirements: Sequence[Selecting]) -> Mapping[str, Any]:
    listed = [
        _filled({"key": one.key, "operator": one.operator, "values": one.values}) for one in requirements
    ]
    return {"requirements": listed} if listed else {}


def body_of(spec: Mapping[str, Any], version: str) -> bytes:
    """The SubjectAccessReview. In its beta, groups are called `group`."""
    if version == "v1beta1":
        spec = {"group" if key == "groups" else key: value for key, value in spec.items()}
    review = {
        "kind": KIND,
        "apiVersion": f"authorization.k8s.io/{version}",
        "metadata": {},
        "spec": spec,
        "status": {"allowed": False},
    }
    return msgspec.json.encode(review)


def _key(spec: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(spec)).digest()


def _length(spec: Mapping[str, Any]) -> int:
    """Of what is asked, without who asks."""
    asked = spec.get("resourceAttributes") or spec["nonResourceAttributes"]
    return sum(len(value) for value in asked.values() if isinstance(value, str))
