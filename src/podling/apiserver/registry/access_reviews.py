"""Access reviews: may he, may he in this namespace, may I. One question in three kinds."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.authz.authorizer import Decision, Opinion
from podling.apiserver.judges import Judges
from podling.apiserver.registry.field import invalid
from podling.apiserver.registry.review import Review
from podling.apiserver.request import RequestInfo, User
from podling.model.authorization import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
)
from podling.model.errors import Cause
from podling.model.meta import ObjectMeta
from podling.model.scheme import resource_of

ONE_OF_TWO = "exactly one of nonResourceAttributes or resourceAttributes must be specified"

Spec = SubjectAccessReviewSpec | SelfSubjectAccessReviewSpec


class SubjectAccessReviews(Review[SubjectAccessReview]):
    resource = resource_of(SubjectAccessReview)

    def validate(self, obj: SubjectAccessReview) -> list[Cause]:
        return [*_unnamed(obj.metadata), *_validate_attributes(obj.spec), *_validate_subject(obj.spec)]

    def answer(self, obj: SubjectAccessReview, asker: User, judges: Judges) -> None:
        obj.status = _status(judges.may(_subject(obj.spec), _info(obj.spec)))


class LocalSubjectAccessReviews(Review[LocalSubjectAccessReview]):
    resource = resource_of(LocalSubjectAccessReview)

    def validate(self, obj: LocalSubjectAccessReview) -> list[Cause]:
        return [
            *_unnamed(obj.metadata),
            *_validate_attributes(obj.spec),
            *_validate_subject(obj.spec),
            *_validate_local(obj),
        ]

    def answer(self, obj: LocalSubjectAccessReview, asker: User, judges: Judges) -> None:
        obj.status = _status(judges.may(_subject(obj.spec), _info(obj.spec)))


class SelfSubjectAccessReviews(Review[SelfSubjectAccessReview]):
    resource = resource_of(SelfSubjectAccessReview)

    def validate(self, obj: SelfSubjectAccessReview) -> list[Cause]:
        return [*_unnamed(obj.metadata), *_validate_attributes(obj.spec)]

    def answer(self, obj: SelfSubjectAccessReview, asker: User, judges: Judges) -> None:
        obj.status = _status(judges.may(asker, _info(obj.spec)))


def _status(opinion: Opinion) -> SubjectAccessReviewStatus:
    decision = opinion.decision
    return SubjectAccessReviewStatus(
        allowed=decision is Decision.ALLOW, denied=decision is Decision.DENY, reason=opinion.reason
    )


def _subject(spec: SubjectAccessReviewSpec) -> User:
    extra = tuple((key, tuple(values)) for key, values in spec.extra.items())
    return User(spec.user, tuple(spec.groups), spec.uid, extra)


def _info(spec: Spec) -> RequestInfo:
    """The request that is asked about."""
    asked = spec.resource_attributes
    if asked is None:
        path = spec.non_resource_attributes
        return RequestInfo(path.verb, path.path) if path else RequestInfo("", "")
    return RequestInfo(
        asked.verb,
        "",
        True,
        asked.group,
        asked.version,
        asked.namespace,
        asked.resource,
        asked.subresource,
        asked.name,
    )


def _unnamed(meta: ObjectMeta) -> Iterator[Cause]:
    if meta.name or meta.labels or meta.annotations:
        yield invalid("metadata", meta, "must be empty")


def _validate_attributes(spec: Spec) -> Iterator[Cause]:
    if spec.resource_attributes is not None and spec.non_resource_attributes is not None:
        why = "cannot be specified in combination with resourceAttributes"
        yield invalid("spec.nonResourceAttributes", spec.non_resource_attributes, why)
    elif spec.resource_attributes is None and spec.non_resource_attributes is None:
        yield invalid("spec.resourceAttributes", None, ONE_OF_TWO)


def _validate_subject(spec: SubjectAccessReviewSpec) -> Iterator[Cause]:
    if not spec.user and not spec.groups:
        yield invalid("spec.user", spec.user, "at least one of user or group must be specified")


def _validate_local(obj: LocalSubjectAccessReview) -> Iterator[Cause]:
    attributes = obj.spec.resource_attributes
    if attributes is not None and attributes.namespace != obj.metadata.namespace:
        yield invalid(
            "spec.resourceAttributes.namespace", attributes.namespace, "must match metadata.namespace"
        )
    if obj.spec.non_resource_attributes is not None:
        why = "disallowed on this kind of request"
        yield invalid("spec.nonResourceAttributes", obj.spec.non_resource_attributes, why)
