"""authorization.k8s.io/v1: the access reviews. They are answered, never stored."""

from typing import ClassVar

from podling.model.codec.fields import Part, always
from podling.model.types.meta import KubeObject, LabelSelectorRequirement


class FieldSelectorRequirement(Part):
    key: str = always(str)
    operator: str = always(str)
    values: list[str] = []


class FieldSelectorAttributes(Part):
    raw_selector: str = ""
    requirements: list[FieldSelectorRequirement] = []


class LabelSelectorAttributes(Part):
    raw_selector: str = ""
    requirements: list[LabelSelectorRequirement] = []


class ResourceAttributes(Part):
    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    field_selector: FieldSelectorAttributes | None = None
    label_selector: LabelSelectorAttributes | None = None


class NonResourceAttributes(Part):
    path: str = ""
    verb: str = ""


class SelfSubjectAccessReviewSpec(Part):
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SubjectAccessReviewSpec(Part):
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    uid: str = ""


class SubjectAccessReviewStatus(Part):
    allowed: bool = always(bool)
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class SubjectAccessReview(KubeObject):
    KIND: ClassVar[str] = "SubjectAccessReview"
    API_VERSION: ClassVar[str] = "authorization.k8s.io/v1"

    spec: SubjectAccessReviewSpec = always(SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = always(SubjectAccessReviewStatus)


class LocalSubjectAccessReview(KubeObject):
    KIND: ClassVar[str] = "LocalSubjectAccessReview"
    API_VERSION: ClassVar[str] = "authorization.k8s.io/v1"

    spec: SubjectAccessReviewSpec = always(SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = always(SubjectAccessReviewStatus)


class SelfSubjectAccessReview(KubeObject):
    KIND: ClassVar[str] = "SelfSubjectAccessReview"
    API_VERSION: ClassVar[str] = "authorization.k8s.io/v1"

    spec: SelfSubjectAccessReviewSpec = always(SelfSubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = always(SubjectAccessReviewStatus)


class SelfSubjectRulesReviewSpec(Part):
    namespace: str = ""


class ResourceRule(Part):
    verbs: list[str] = always(list)
    api_groups: list[str] = []
    resources: list[str] = []
    resource_names: list[str] = []


class NonResourceRule(Part):
    verbs: list[str] = always(list)
    non_resource_urls: list[str] = []


class SubjectRulesReviewStatus(Part):
    resource_rules: list[ResourceRule] = always(list)
    non_resource_rules: list[NonResourceRule] = always(list)
    incomplete: bool = always(bool)
    evaluation_error: str = ""


class SelfSubjectRulesReview(KubeObject):
    KIND: ClassVar[str] = "SelfSubjectRulesReview"
    API_VERSION: ClassVar[str] = "authorization.k8s.io/v1"

    spec: SelfSubjectRulesReviewSpec = always(SelfSubjectRulesReviewSpec)
    status: SubjectRulesReviewStatus = always(SubjectRulesReviewStatus)
