"""Reviews: kinds that are posted as a question, answered, and never stored.

A TokenReview asks whose token it is; the three kinds of SubjectAccessReview ask whether a user may do
something; a SelfSubjectReview asks who one is; a SelfSubjectRulesReview asks for all that one may do in a
namespace, and its answer is incomplete, since the authorizers have no rules to list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import structs

from podling.apiserver.authz.authorizers import AccessReviewer, Decision, Opinion
from podling.apiserver.kinds.kind import Kind
from podling.apiserver.request.request import RequestInfo, User
from podling.apiserver.rules.field import all_invalid, invalid, required
from podling.apiserver.rules.metadata import validate_label_key, validate_values
from podling.model import names
from podling.model.errors import Cause, bad_request
from podling.model.scheme import resource_of
from podling.model.time import rfc3339
from podling.model.types.authentication import (
    SelfSubjectReview,
    SelfSubjectReviewStatus,
    TokenReview,
    TokenReviewStatus,
    UserInfo,
)
from podling.model.types.authorization import (
    FieldSelectorAttributes,
    FieldSelectorRequirement,
    LabelSelectorAttributes,
    LocalSubjectAccessReview,
    NonResourceRule,
    ResourceRule,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
    SubjectRulesReviewStatus,
)
from podling.model.types.meta import KubeObject, LabelSelectorRequirement, ObjectMeta

T = TypeVar("T", bound=KubeObject)

ONE_OF_TWO = "exactly one of nonResourceAttributes or resourceAttributes must be specified"

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")

Requirement = FieldSelectorRequirement | LabelSelectorRequirement
Spec = SubjectAccessReviewSpec | SelfSubjectAccessReviewSpec

ANY = "*"
ANYTHING = SubjectRulesReviewStatus(
    resource_rules=[ResourceRule(verbs=[ANY], api_groups=[ANY], resources=[ANY])],
    non_resource_rules=[NonResourceRule(verbs=[ANY], non_resource_urls=[ANY])],
)
UNKNOWN = SubjectRulesReviewStatus(incomplete=True, evaluation_error="no authorizer lists its rules")


class Review(Kind[T], Generic[T]):
    verbs = ("create",)

    def row(self, obj: T, now: datetime) -> list[Any]:
        """Reviews are not shown in tables."""
        return []

    def answer(self, obj: T, asker: User, reviewer: AccessReviewer, now: datetime) -> None:
        """Fill in the status of `obj`, which is valid. `asker`: the user of the request. Raises
        StatusError."""
        raise NotImplementedError


class SubjectAccessReviews(Review[SubjectAccessReview]):
    resource = resource_of(SubjectAccessReview)

    def validate(self, obj: SubjectAccessReview) -> list[Cause]:
        return [*_validate_attributes(obj.spec), *_validate_subject(obj.spec), *_validate_empty(obj.metadata)]

    def answer(self, obj: SubjectAccessReview, asker: User, reviewer: AccessReviewer, now: datetime) -> None:
        obj.status = _status(reviewer.may(_subject(obj.spec), _info(obj.spec)))


class LocalSubjectAccessReviews(Review[LocalSubjectAccessReview]):
    resource = resource_of(LocalSubjectAccessReview)

    def validate(self, obj: LocalSubjectAccessReview) -> list[Cause]:
        causes = [*_validate_attributes(obj.spec), *_validate_subject(obj.spec)]
        if structs.replace(obj.metadata, managed_fields=[], namespace="") != ObjectMeta():
            causes.append(invalid("metadata", obj.metadata, "must be empty except for namespace"))
        attributes = obj.spec.resource_attributes
        if attributes is not None and attributes.namespace != obj.metadata.namespace:
            path = "spec.resourceAttributes.namespace"
            causes.append(invalid(path, attributes.namespace, "must match metadata.namespace"))
        if (path_attributes := obj.spec.non_resource_attributes) is not None:
            why = "disallowed on this kind of request"
            causes.append(invalid("spec.nonResourceAttributes", path_attributes, why))
        return causes

    def answer(
        self, obj: LocalSubjectAccessReview, asker: User, reviewer: AccessReviewer, now: datetime
    ) -> None:
        obj.status = _status(reviewer.may(_subject(obj.spec), _info(obj.spec)))


class SelfSubjectAccessReviews(Review[SelfSubjectAccessReview]):
    resource = resource_of(SelfSubjectAccessReview)

    def validate(self, obj: SelfSubjectAccessReview) -> list[Cause]:
        return [*_validate_attributes(obj.spec), *_validate_empty(obj.metadata)]

    def answer(
        self, obj: SelfSubjectAccessReview, asker: User, reviewer: AccessReviewer, now: datetime
    ) -> None:
        obj.status = _status(reviewer.may(asker, _info(obj.spec)))


def _status(opinion: Opinion) -> SubjectAccessReviewStatus:
    decision = opinion.decision
    return SubjectAccessReviewStatus(
        allowed=decision is Decision.ALLOW, denied=decision is Decision.DENY, reason=opinion.reason
    )


def _subject(spec: SubjectAccessReviewSpec) -> User:
    extra = tuple((key, tuple(values)) for key, values in spec.extra.items())
    return User(spec.user, tuple(spec.groups), spec.uid, extra)


def _info(spec: Spec) -> RequestInfo:
    """The request that the review asks about."""
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


def _validate_empty(meta: ObjectMeta) -> Iterator[Cause]:
    if structs.replace(meta, managed_fields=[]) != ObjectMeta():
        yield invalid("metadata", meta, "must be empty")


def _validate_attributes(spec: Spec) -> Iterator[Cause]:
    if spec.resource_attributes is not None and spec.non_resource_attributes is not None:
        why = "cannot be specified in combination with resourceAttributes"
        yield invalid("spec.nonResourceAttributes", spec.non_resource_attributes, why)
    elif spec.resource_attributes is None and spec.non_resource_attributes is None:
        yield invalid("spec.resourceAttributes", None, ONE_OF_TWO)
    if spec.resource_attributes is not None:
        path = "spec.resourceAttributes"
        if (fields := spec.resource_attributes.field_selector) is not None:
            yield from _validate_selector(fields, f"{path}.fieldSelector")
        if (labels := spec.resource_attributes.label_selector) is not None:
            yield from _validate_selector(labels, f"{path}.labelSelector")


def _validate_selector(
    selector: FieldSelectorAttributes | LabelSelectorAttributes, path: str
) -> Iterator[Cause]:
    """Unknown operators pass: they come from a newer client."""
    if selector.raw_selector and selector.requirements:
        why = "may not specified at the same time as requirements"
        yield invalid(f"{path}.rawSelector", selector.raw_selector, why)
    if not selector.raw_selector and not selector.requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        yield required(f"{path}.requirements", why)
    requirements: Sequence[Requirement] = selector.requirements
    for i, requirement in enumerate(requirements):
        where = f"{path}.requirements[{i}]"
        of_label = isinstance(selector, LabelSelectorAttributes)
        if not of_label and not requirement.key:
            yield required(f"{where}.key", "must be specified")
        if requirement.operator in OPERATORS:
            yield from validate_values(requirement.operator, requirement.values, where)
        if of_label:
            yield from validate_label_key(requirement.key, f"{where}.key")
            for j, value in enumerate(requirement.values):
                yield from all_invalid(f"{where}.values[{j}]", value, names.label_value(value))


def _validate_subject(spec: SubjectAccessReviewSpec) -> Iterator[Cause]:
    if not spec.user and not spec.groups:
        yield invalid("spec.user", spec.user, "at least one of user or group must be specified")


class SelfSubjectReviews(Review[SelfSubjectReview]):
    resource = resource_of(SelfSubjectReview)

    def answer(self, obj: SelfSubjectReview, asker: User, reviewer: AccessReviewer, now: datetime) -> None:
        """The metadata of the question is not part of the answer."""
        obj.metadata = ObjectMeta(creation_timestamp=rfc3339(now))
        obj.status = SelfSubjectReviewStatus(user_info=info_of(asker))


def info_of(user: User) -> UserInfo:
    return UserInfo(
        username=user.name,
        uid=user.uid,
        groups=list(user.groups),
        extra={key: list(values) for key, values in user.extra},
    )


class SelfSubjectRulesReviews(Review[SelfSubjectRulesReview]):
    resource = resource_of(SelfSubjectRulesReview)

    def answer(
        self, obj: SelfSubjectRulesReview, asker: User, reviewer: AccessReviewer, now: datetime
    ) -> None:
        """Raises StatusError 400 if no namespace is named."""
        if not obj.spec.namespace:
            raise bad_request("no namespace on request")
        anything = RequestInfo(ANY, "", True, ANY, ANY, obj.spec.namespace, ANY)
        allowed = reviewer.may(asker, anything).decision is Decision.ALLOW
        obj.status = ANYTHING if allowed else UNKNOWN


class TokenReviews(Review[TokenReview]):
    resource = resource_of(TokenReview)

    def answer(self, obj: TokenReview, asker: User, reviewer: AccessReviewer, now: datetime) -> None:
        """Raises StatusError 400 if the token is empty."""
        if not obj.spec.token:
            raise bad_request("token is required for TokenReview in authentication")
        owner = reviewer.owner_of(obj.spec.token, obj.spec.audiences)
        if owner is None:
            obj.status = TokenReviewStatus(error="invalid bearer token")
        else:
            obj.status = TokenReviewStatus(
                authenticated=True, user=info_of(owner.user), audiences=list(owner.audiences)
            )
