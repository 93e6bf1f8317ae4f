"""What Kubernetes publishes about fields that does not follow from their types, by type and JSON name.

`tests/peer/test_openapi.py` compares it, and everything that does follow, with kube-apiserver's own
documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REQUIRED = frozenset(
    {
        ("Binding", "target"),
        ("CephFSVolumeSource", "monitors"),
        ("ClusterRoleBinding", "roleRef"),
        ("Condition", "lastTransitionTime"),
        ("ContainerExtendedResourceRequest", "requestMappings"),
        ("Endpoint", "addresses"),
        ("Event", "involvedObject"),
        ("Event", "metadata"),
        ("EventsEvent", "eventTime"),
        ("EventsSeries", "lastObservedTime"),
        ("LimitRangeSpec", "limits"),
        ("LocalSubjectAccessReview", "spec"),
        ("NodeAllocatableResourceClaimStatus", "resources"),
        ("NodeSelector", "nodeSelectorTerms"),
        ("NonResourceRule", "verbs"),
        ("PersistentVolumeClaimTemplate", "spec"),
        ("PodCertificateProjection", "keyType"),
        ("PodCertificateProjection", "signerName"),
        ("PodExtendedResourceClaimStatus", "requestMappings"),
        ("PodSpec", "containers"),
        ("PolicyRule", "verbs"),
        ("PreferredSchedulingTerm", "preference"),
        ("RBDVolumeSource", "monitors"),
        ("ResourceRule", "verbs"),
        ("RoleBinding", "roleRef"),
        ("ScaleIOVolumeSource", "secretRef"),
        ("SelfSubjectAccessReview", "spec"),
        ("SelfSubjectRulesReview", "spec"),
        ("SubjectAccessReview", "spec"),
        ("SubjectRulesReviewStatus", "nonResourceRules"),
        ("SubjectRulesReviewStatus", "resourceRules"),
        ("TokenReview", "spec"),
        ("TokenReviewSpec", "token"),
        ("WeightedPodAffinityTerm", "podAffinityTerm"),
    }
)
"""Required, although they are not scalars that are always written."""

OPTIONAL = frozenset(
    {
        ("Event", "reportingComponent"),
        ("Event", "reportingInstance"),
        ("ListMeta", "resourceVersion"),
        ("NodeRuntimeHandler", "name"),
        ("PodDisruptionBudgetStatus", "currentHealthy"),
        ("PodDisruptionBudgetStatus", "desiredHealthy"),
        ("PodDisruptionBudgetStatus", "disruptionsAllowed"),
        ("PodDisruptionBudgetStatus", "expectedPods"),
        ("PriorityClass", "value"),
        ("RoleRef", "apiGroup"),
        ("ServicePort", "targetPort"),
        ("TokenRequestStatus", "expirationTimestamp"),
        ("TokenRequestStatus", "token"),
    }
)
"""Optional, although they are scalars that are always written."""

DEFAULTS: Mapping[tuple[str, str], Any] = {
    ("AzureDiskVolumeSource", "cachingMode"): "ReadWrite",
    ("AzureDiskVolumeSource", "fsType"): "ext4",
    ("AzureDiskVolumeSource", "kind"): "Shared",
    ("AzureDiskVolumeSource", "readOnly"): False,
    ("ConfigMapEnvSource", "name"): "",
    ("ConfigMapKeySelector", "name"): "",
    ("ConfigMapProjection", "name"): "",
    ("ConfigMapVolumeSource", "name"): "",
    ("ContainerPort", "protocol"): "TCP",
    ("FileKeySelector", "optional"): False,
    ("GRPCAction", "service"): "",
    ("ISCSIVolumeSource", "iscsiInterface"): "default",
    ("LocalObjectReference", "name"): "",
    ("RBDVolumeSource", "keyring"): "/etc/ceph/keyring",
    ("RBDVolumeSource", "pool"): "rbd",
    ("RBDVolumeSource", "user"): "admin",
    ("ScaleIOVolumeSource", "fsType"): "xfs",
    ("ScaleIOVolumeSource", "storageMode"): "ThinProvisioned",
    ("SecretEnvSource", "name"): "",
    ("SecretKeySelector", "name"): "",
    ("SecretProjection", "name"): "",
    ("ServicePort", "protocol"): "TCP",
}
"""Defaults of fields, where the type does not have them."""

NO_DEFAULT = frozenset(
    {
        ("ContainerRestartRule", "action"),
        ("ContainerRestartRuleOnExitCodes", "operator"),
        ("ImageVolumeStatus", "imageRef"),
        ("ListMeta", "resourceVersion"),
    }
)
"""Scalars that are always written, and published without the empty value as their default."""

UNIONS: Mapping[str, Mapping[str, Any]] = {
    "AppArmorProfile": {
        "discriminator": "type",
        "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"},
    },
    "PodSchedulingGroup": {"fields-to-discriminateBy": {"podGroupName": "PodGroupName"}},
    "SeccompProfile": {
        "discriminator": "type",
        "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"},
    },
}
"""`x-kubernetes-unions` of types of whose fields at most one is set."""
