"""flowcontrol.apiserver.k8s.io/v1: which requests wait for which, when the server has much to do."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import SET, Int32, Part, Time, always, by, null
from podling.model.types.meta import KubeObject


class PriorityLevelConfigurationReference(Part):
    name: str = always(str)


class FlowDistinguisherMethod(Part):
    type: str = always(str)


class UserSubject(Part):
    name: str = always(str)


class GroupSubject(Part):
    name: str = always(str)


class ServiceAccountSubject(Part):
    namespace: str = always(str)
    name: str = always(str)


class FlowSubject(Part):
    kind: str = always(str)
    user: UserSubject | None = None
    group: GroupSubject | None = None
    service_account: ServiceAccountSubject | None = None


class ResourcePolicyRule(Part):
    verbs: Annotated[list[str], SET] = always(list)
    api_groups: Annotated[list[str], SET] = always(list)
    resources: Annotated[list[str], SET] = always(list)
    cluster_scope: bool = False
    namespaces: Annotated[list[str], SET] = always(list)


class NonResourcePolicyRule(Part):
    verbs: Annotated[list[str], SET] = always(list)
    non_resource_urls: Annotated[list[str], SET] = always(list)


class PolicyRulesWithSubjects(Part):
    subjects: list[FlowSubject] = always(list)
    resource_rules: list[ResourcePolicyRule] = []
    non_resource_rules: list[NonResourcePolicyRule] = []


class FlowSchemaSpec(Part):
    priority_level_configuration: PriorityLevelConfigurationReference = always(
        PriorityLevelConfigurationReference
    )
    matching_precedence: Int32 = always(int)
    distinguisher_method: FlowDistinguisherMethod | None = None
    rules: list[PolicyRulesWithSubjects] = []


class FlowSchemaCondition(Part):
    type: str = ""
    status: str = ""
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class FlowSchemaStatus(Part):
    conditions: Annotated[list[FlowSchemaCondition], by("type")] = []


class FlowSchema(KubeObject):
    KIND: ClassVar[str] = "FlowSchema"
    API_VERSION: ClassVar[str] = "flowcontrol.apiserver.k8s.io/v1"

    spec: FlowSchemaSpec = always(FlowSchemaSpec)
    status: FlowSchemaStatus = always(FlowSchemaStatus)


class QueuingConfiguration(Part):
    queues: Int32 = always(int)
    hand_size: Int32 = always(int)
    queue_length_limit: Int32 = always(int)


class LimitResponse(Part):
    type: str = always(str)
    queuing: QueuingConfiguration | None = None


class LimitedPriorityLevelConfiguration(Part):
    nominal_concurrency_shares: Int32 | None = null()
    limit_response: LimitResponse = always(LimitResponse)
    lendable_percent: Int32 | None = None
    borrowing_limit_percent: Int32 | None = None


class ExemptPriorityLevelConfiguration(Part):
    nominal_concurrency_shares: Int32 | None = None
    lendable_percent: Int32 | None = None


class PriorityLevelConfigurationSpec(Part):
    type: str = always(str)
    limited: LimitedPriorityLevelConfiguration | None = None
    exempt: ExemptPriorityLevelConfiguration | None = None


class PriorityLevelConfigurationCondition(Part):
    type: str = ""
    status: str = ""
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class PriorityLevelConfigurationStatus(Part):
    conditions: Annotated[list[PriorityLevelConfigurationCondition], by("type")] = []


class PriorityLevelConfiguration(KubeObject):
    KIND: ClassVar[str] = "PriorityLevelConfiguration"
    API_VERSION: ClassVar[str] = "flowcontrol.apiserver.k8s.io/v1"

    spec: PriorityLevelConfigurationSpec = always(PriorityLevelConfigurationSpec)
    status: PriorityLevelConfigurationStatus = always(PriorityLevelConfigurationStatus)
