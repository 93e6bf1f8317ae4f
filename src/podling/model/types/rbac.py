"""rbac.authorization.k8s.io/v1: roles, cluster roles and their bindings."""

from typing import ClassVar

from podling.model.codec.fields import Part, always
from podling.model.types.meta import KubeObject, LabelSelector

GROUP = "rbac.authorization.k8s.io"
MASTERS = "system:masters"
"""The group that may do anything, whatever roles say."""
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
"""The groups of everybody, by whether the server knows who it is."""
SERVICE_ACCOUNTS = "system:serviceaccounts"
"""The group of all service accounts; those of a namespace have one named after it, too."""


class PolicyRule(Part):
    verbs: list[str] = always(list)
    api_groups: list[str] = []
    resources: list[str] = []
    resource_names: list[str] = []
    non_resource_urls: list[str] = []


class Subject(Part):
    ATOMIC: ClassVar[bool] = True

    kind: str = always(str)
    api_group: str = ""
    name: str = always(str)
    namespace: str = ""


class RoleRef(Part):
    ATOMIC: ClassVar[bool] = True

    api_group: str = always(str)
    kind: str = always(str)
    name: str = always(str)


class AggregationRule(Part):
    cluster_role_selectors: list[LabelSelector] = []


class Role(KubeObject):
    KIND: ClassVar[str] = "Role"
    API_VERSION: ClassVar[str] = "rbac.authorization.k8s.io/v1"

    rules: list[PolicyRule] = always(list)


class RoleBinding(KubeObject):
    KIND: ClassVar[str] = "RoleBinding"
    API_VERSION: ClassVar[str] = "rbac.authorization.k8s.io/v1"

    subjects: list[Subject] = []
    role_ref: RoleRef = always(RoleRef)


class ClusterRole(KubeObject):
    KIND: ClassVar[str] = "ClusterRole"
    API_VERSION: ClassVar[str] = "rbac.authorization.k8s.io/v1"

    rules: list[PolicyRule] = always(list)
    aggregation_rule: AggregationRule | None = None


class ClusterRoleBinding(KubeObject):
    KIND: ClassVar[str] = "ClusterRoleBinding"
    API_VERSION: ClassVar[str] = "rbac.authorization.k8s.io/v1"

    subjects: list[Subject] = []
    role_ref: RoleRef = always(RoleRef)
