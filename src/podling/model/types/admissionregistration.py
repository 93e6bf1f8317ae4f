"""admissionregistration.k8s.io/v1: webhooks and policies that admit or change what is written."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import SET, Int32, Int64, Part, always, by, keyed, null
from podling.model.types.meta import Condition, KubeObject, LabelSelector


class ParamKind(Part):
    ATOMIC: ClassVar[bool] = True

    api_version: str = ""
    kind: str = ""


class NamedRuleWithOperations(Part):
    ATOMIC: ClassVar[bool] = True

    resource_names: list[str] = []
    operations: list[str] = []
    api_groups: list[str] = []
    api_versions: list[str] = []
    resources: list[str] = []
    scope: str | None = None


class MatchResources(Part):
    ATOMIC: ClassVar[bool] = True

    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: list[NamedRuleWithOperations] = []
    exclude_resource_rules: list[NamedRuleWithOperations] = []
    match_policy: str | None = None


class Variable(Part):
    ATOMIC: ClassVar[bool] = True

    name: str = always(str)
    expression: str = always(str)


class ApplyConfiguration(Part):
    expression: str = ""


class JSONPatch(Part):
    expression: str = ""


class Mutation(Part):
    patch_type: str = always(str)
    apply_configuration: ApplyConfiguration | None = None
    json_patch: JSONPatch | None = None


class MatchCondition(Part):
    name: str = always(str)
    expression: str = always(str)


class MutatingAdmissionPolicySpec(Part):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    variables: list[Variable] = []
    mutations: list[Mutation] = []
    failure_policy: str | None = None
    match_conditions: Annotated[list[MatchCondition], by("name")] = []
    reinvocation_policy: str = ""


class MutatingAdmissionPolicy(KubeObject):
    KIND: ClassVar[str] = "MutatingAdmissionPolicy"
    API_VERSION: ClassVar[str] = "admissionregistration.k8s.io/v1"

    spec: MutatingAdmissionPolicySpec = always(MutatingAdmissionPolicySpec)


class ParamRef(Part):
    ATOMIC: ClassVar[bool] = True

    name: str = ""
    namespace: str = ""
    selector: LabelSelector | None = None
    parameter_not_found_action: str | None = None


class MutatingAdmissionPolicyBindingSpec(Part):
    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None


class MutatingAdmissionPolicyBinding(KubeObject):
    KIND: ClassVar[str] = "MutatingAdmissionPolicyBinding"
    API_VERSION: ClassVar[str] = "admissionregistration.k8s.io/v1"

    spec: MutatingAdmissionPolicyBindingSpec = always(MutatingAdmissionPolicyBindingSpec)


class WebhookServiceReference(Part):
    GO_NAME: ClassVar[str] = "ServiceReference"

    namespace: str = always(str)
    name: str = always(str)
    path: str | None = None
    port: Int32 | None = None


class WebhookClientConfig(Part):
    url: str | None = None
    service: WebhookServiceReference | None = None
    ca_bundle: bytes = b""


class RuleWithOperations(Part):
    operations: list[str] = []
    api_groups: list[str] = []
    api_versions: list[str] = []
    resources: list[str] = []
    scope: str | None = None


class MutatingWebhook(Part):
    name: str = always(str)
    client_config: WebhookClientConfig = always(WebhookClientConfig)
    rules: list[RuleWithOperations] = []
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str | None = null()
    timeout_seconds: Int32 | None = None
    admission_review_versions: list[str] = always(list)
    reinvocation_policy: str | None = None
    match_conditions: Annotated[list[MatchCondition], by("name")] = []


class MutatingWebhookConfiguration(KubeObject):
    KIND: ClassVar[str] = "MutatingWebhookConfiguration"
    API_VERSION: ClassVar[str] = "admissionregistration.k8s.io/v1"

    webhooks: Annotated[list[MutatingWebhook], by("name")] = []


class Validation(Part):
    expression: str = always(str)
    message: str = ""
    reason: str | None = None
    message_expression: str = ""


class AuditAnnotation(Part):
    key: str = always(str)
    value_expression: str = always(str)


class ValidatingAdmissionPolicySpec(Part):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    validations: list[Validation] = []
    failure_policy: str | None = None
    audit_annotations: list[AuditAnnotation] = []
    match_conditions: Annotated[list[MatchCondition], by("name")] = []
    variables: Annotated[list[Variable], by("name")] = []


class ExpressionWarning(Part):
    field_ref: str = always(str)
    warning: str = always(str)


class TypeChecking(Part):
    expression_warnings: list[ExpressionWarning] = []


class ValidatingAdmissionPolicyStatus(Part):
    observed_generation: Int64 = 0
    type_checking: TypeChecking | None = None
    conditions: Annotated[list[Condition], keyed("type")] = []


class ValidatingAdmissionPolicy(KubeObject):
    KIND: ClassVar[str] = "ValidatingAdmissionPolicy"
    API_VERSION: ClassVar[str] = "admissionregistration.k8s.io/v1"

    spec: ValidatingAdmissionPolicySpec = always(ValidatingAdmissionPolicySpec)
    status: ValidatingAdmissionPolicyStatus = always(ValidatingAdmissionPolicyStatus)


class ValidatingAdmissionPolicyBindingSpec(Part):
    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: Annotated[list[str], SET] = []


class ValidatingAdmissionPolicyBinding(KubeObject):
    KIND: ClassVar[str] = "ValidatingAdmissionPolicyBinding"
    API_VERSION: ClassVar[str] = "admissionregistration.k8s.io/v1"

    spec: ValidatingAdmissionPolicyBindingSpec = always(ValidatingAdmissionPolicyBindingSpec)


class ValidatingWebhook(Part):
    name: str = always(str)
    client_config: WebhookClientConfig = always(WebhookClientConfig)
    rules: list[RuleWithOperations] = []
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str | None = null()
    timeout_seconds: Int32 | None = None
    admission_review_versions: list[str] = always(list)
    match_conditions: Annotated[list[MatchCondition], by("name")] = []


class ValidatingWebhookConfiguration(KubeObject):
    KIND: ClassVar[str] = "ValidatingWebhookConfiguration"
    API_VERSION: ClassVar[str] = "admissionregistration.k8s.io/v1"

    webhooks: Annotated[list[ValidatingWebhook], by("name")] = []
