"""The fields that Kubernetes publishes as `enum`, and the values they may have: for OpenAPI and `kubectl
explain`.

Validation may accept more or less than these, for example when a gate decides.
"""

from __future__ import annotations

from collections.abc import Mapping

_PROTOCOL = ("SCTP", "TCP", "UDP")
_PULL = ("Always", "IfNotPresent", "Never")
_MESSAGE = ("FallbackToLogsOnError", "File")
_PREEMPTION = ("Never", "PreemptLowerPriority")
_EFFECT = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_PROFILE = ("Localhost", "RuntimeDefault", "Unconfined")
_INCLUSION = ("Honor", "Ignore")
_SCOPE = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
_TRAFFIC = ("Cluster", "Local")

ENUMS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("AppArmorProfile", "type"): _PROFILE,
    ("AzureDiskVolumeSource", "cachingMode"): ("None", "ReadOnly", "ReadWrite"),
    ("AzureDiskVolumeSource", "kind"): ("Dedicated", "Managed", "Shared"),
    ("Container", "imagePullPolicy"): _PULL,
    ("Container", "terminationMessagePolicy"): _MESSAGE,
    ("ContainerPort", "protocol"): _PROTOCOL,
    ("EndpointPort", "protocol"): _PROTOCOL,
    ("EndpointSlice", "addressType"): ("FQDN", "IPv4", "IPv6"),
    ("EphemeralContainer", "imagePullPolicy"): _PULL,
    ("EphemeralContainer", "terminationMessagePolicy"): _MESSAGE,
    ("HTTPGetAction", "scheme"): ("HTTP", "HTTPS"),
    ("HostPathVolumeSource", "type"): (
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ),
    ("ImageVolumeSource", "pullPolicy"): _PULL,
    ("NamespaceStatus", "phase"): ("Active", "Terminating"),
    ("NodeSelectorRequirement", "operator"): ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"),
    ("NodeStatus", "phase"): ("Pending", "Running", "Terminated"),
    ("PersistentVolumeClaimSpec", "accessModes"): (
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOnce",
        "ReadWriteOncePod",
    ),
    ("PersistentVolumeClaimSpec", "volumeMode"): ("Block", "Filesystem"),
    ("PodDisruptionBudgetSpec", "unhealthyPodEvictionPolicy"): ("AlwaysAllow", "IfHealthyBudget"),
    ("PodSecurityContext", "fsGroupChangePolicy"): ("Always", "OnRootMismatch"),
    ("PodSecurityContext", "supplementalGroupsPolicy"): ("Merge", "Strict"),
    ("PodSpec", "dnsPolicy"): ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    ("PodSpec", "preemptionPolicy"): _PREEMPTION,
    ("PodSpec", "restartPolicy"): ("Always", "Never", "OnFailure"),
    ("PodStatus", "phase"): ("Failed", "Pending", "Running", "Succeeded", "Unknown"),
    ("PodStatus", "qosClass"): ("BestEffort", "Burstable", "Guaranteed"),
    ("PortStatus", "protocol"): _PROTOCOL,
    ("PriorityClass", "preemptionPolicy"): _PREEMPTION,
    ("ResourceQuotaSpec", "scopes"): _SCOPE,
    ("ScopedResourceSelectorRequirement", "operator"): ("DoesNotExist", "Exists", "In", "NotIn"),
    ("ScopedResourceSelectorRequirement", "scopeName"): _SCOPE,
    ("SeccompProfile", "type"): _PROFILE,
    ("SecurityContext", "procMount"): ("Default", "Unmasked"),
    ("ServicePort", "protocol"): _PROTOCOL,
    ("ServiceSpec", "externalTrafficPolicy"): _TRAFFIC,
    ("ServiceSpec", "internalTrafficPolicy"): _TRAFFIC,
    ("ServiceSpec", "ipFamilies"): ("", "IPv4", "IPv6"),
    ("ServiceSpec", "ipFamilyPolicy"): ("PreferDualStack", "RequireDualStack", "SingleStack"),
    ("ServiceSpec", "sessionAffinity"): ("ClientIP", "None"),
    ("ServiceSpec", "type"): ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    ("SlicePort", "protocol"): _PROTOCOL,
    ("Taint", "effect"): _EFFECT,
    ("Toleration", "effect"): _EFFECT,
    ("Toleration", "operator"): ("Equal", "Exists", "Gt", "Lt"),
    ("TopologySpreadConstraint", "nodeAffinityPolicy"): _INCLUSION,
    ("TopologySpreadConstraint", "nodeTaintsPolicy"): _INCLUSION,
    ("TopologySpreadConstraint", "whenUnsatisfiable"): ("DoNotSchedule", "ScheduleAnyway"),
    ("VolumeMount", "mountPropagation"): ("Bidirectional", "HostToContainer", "None"),
}
"""By type and wire name, in alphabetical order. For a list: the values of its items."""
