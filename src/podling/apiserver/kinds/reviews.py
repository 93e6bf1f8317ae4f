"""Reviews: kinds that are posted as a question, answered, and never stored.

A TokenReview asks whose token it is; the three kinds of SubjectAccessReview ask whether a user may do
something; a SelfSubjectReview asks who one is; a SelfSubjectRulesReview asks for all that one may do in a
namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import structs

from podling.apiserver.authz.authorizers import (
    AccessReviewer,
    Decision,
    field_requirements,
    label_requirements,
    settled,
    together,
)
from podling.apiserver.kinds.kind import Kind
from podling.apiserver.request.request import RequestInfo, Selecting, User
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
    ResourceAttributes,
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

ANY_VERSION = "*"
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")

Requirement = FieldSelectorRequirement | LabelSelectorRequirement
Spec = SubjectAccessReviewSpec | SelfSubjectAccessReviewSpec


class Review(Kind[T], Generic[T]):
    verbs = ("create",)

    def row(self, obj: T, now: datetime) -> list[Any]:
        """Reviews are not shown in tables."""
        return []

    async def answer(self, obj: T, asker: User, reviewer: AccessReviewer, now: datetime) -> None:
        """Fill in the status of `obj`, which is valid. `asker`: the user of the request. Raises
        StatusError."""
        raise NotImplementedError


class SubjectAccessReviews(Review[SubjectAccessReview]):
    resource = resource_of(SubjectAccessReview)

    def validate(self, obj: SubjectAccessReview) -> list[Cause]:
        return [*_validate_attributes(obj.spec), *_validate_subject(obj.spec), *_validate_empty(obj.metadata)]

    async def answer(
        self, obj: SubjectAccessReview, asker: User, reviewer: AccessReviewer, now: datetime
    ) -> None:
        obj.status = await _judged(reviewer, _subject(obj.spec), obj.spec)


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

    async def answer(
        self, obj: LocalSubjectAccessReview, asker: User, reviewer: AccessReviewer, now: datetime
    ) -> None:
        obj.status = await _judged(reviewer, _subject(obj.spec), obj.spec)


class SelfSubjectAccessReviews(Review[SelfSubjectAccessReview]):
    resource = resource_of(SelfSubjectAccessReview)

    def validate(self, obj: SelfSubjectAccessReview) -> list[Cause]:
        return [*_validate_attributes(obj.spec), *_validate_empty(obj.metadata)]

    async def answer(
        self, obj: SelfSubjectAccessReview, asker: User, reviewer: AccessReviewer, now: datetime
    ) -> None:
        obj.status = await _judged(reviewer, asker, obj.spec)


async def _judged(reviewer: AccessReviewer, user: User, spec: Spec) -> SubjectAccessReviewStatus:
    info = _info(spec)
    opinion = await settled(lambda: reviewer.may(user, info))
    return SubjectAccessReviewStatus(
        allowed=opinion.decision is Decision.ALLOW,
        denied=opinion.decision is Decision.DENY,
        reason=opinion.reason,
        evaluation_error="; ".join(
            [*filter(None, [opinion.error]), *_unreadable(spec.resource_attributes, info)]
        ),
    )


def _unreadable(asked: ResourceAttributes | None, info: RequestInfo) -> Iterator[str]:
    """What is said of selectors of which not all was understood."""
    if asked is None:
        return
    for name, selector, read in (
        ("fieldSelector", asked.field_selector, info.fields),
        ("labelSelector", asked.label_selector, info.labels),
    ):
        if selector is None:
            continue
        said = len(selector.requirements) if selector.requirements else 1
        if selector.raw_selector and read:
            said = len(read)
        if len(read) < said:
            how = "partially ignored" if read else "ignored"
            yield f"spec.resourceAttributes.{name} {how} due to parse error"


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
        asked.version or ANY_VERSION,
        asked.namespace,
        asked.resource,
        asked.subresource,
        asked.name,
        fields=_fields(asked.field_selector),
        labels=_labels(asked.label_selector),
    )


def _fields(selector: FieldSelectorAttributes | None) -> Sequence[Selecting]:
    """What cannot be read asks for nothing."""
    if selector is None:
        return ()
    # Fields are compared with one value, as in a query.
    listed = (one for one in _listed(selector.requirements) if len(one.values) == 1)
    return field_requirements(selector.raw_selector) or tuple(listed)


def _labels(selector: LabelSelectorAttributes | None) -> Sequence[Selecting]:
    if selector is None:
        return ()
    return label_requirements(selector.raw_selector) or _listed(selector.requirements)


def _listed(requirements: Sequence[Requirement]) -> Sequence[Selecting]:
    return tuple(
        Selecting(one.key, one.operator, tuple(one.values))
        for one in requirements
        if one.operator in OPERATORS
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

    async def answer(
        self, obj: SelfSubjectReview, asker: User, reviewer: AccessReviewer, now: datetime
    ) -> None:
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

    async def answer(
        self, obj: SelfSubjectRulesReview, asker: User, reviewer: AccessReviewer, now: datetime
    ) -> None:
        """Raises StatusError 400 if no namespace is named."""
        if not obj.spec.namespace:
            raise bad_request("no namespace on request")
        listed = reviewer.rules_of(asker, obj.spec.namespace)
        # The answer does not repeat the question.
        obj.metadata, obj.spec = ObjectMeta(), type(obj.spec)()
        obj.status = SubjectRulesReviewStatus(
            resource_rules=[
                ResourceRule(
                    verbs=rule.verbs,
                    api_groups=rule.api_groups,
                    resources=rule.resources,
                    resource_names=rule.resource_names,
                )
                for rule in listed.rules
                if rule.resources
            ],
            non_resource_rules=[
                NonResourceRule(verbs=rule.verbs, non_resource_urls=rule.non_resource_urls)
                for rule in listed.rules
                if rule.non_resource_urls
            ],
            incomplete=listed.incomplete,
            evaluation_error=together(listed.faults),
        )


class TokenReviews(Review[TokenReview]):
    resource = resource_of(TokenReview)

    async def answer(self, obj: TokenReview, asker: User, reviewer: AccessReviewer, now: datetime) -> None:
        """Raises StatusError 400 if the token is empty."""
        if not obj.spec.token:
            raise bad_request("token is required for TokenReview in authentication")
        owner = await reviewer.owner_of(obj.spec.token, obj.spec.audiences)
        if isinstance(owner, str):
            obj.status = TokenReviewStatus(error=owner)
        else:
            obj.status = TokenReviewStatus(
                authenticated=True, user=info_of(owner.user), audiences=list(owner.audiences)
            )
