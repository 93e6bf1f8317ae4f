"""The names of `--enable-admission-plugins` and `--disable-admission-plugins`. Pure."""

from __future__ import annotations

from podling.model.codec.quoting import quoted
from podling.model.errors import joined

# NodeRestriction is among them as with kubeadm; kube-apiserver by itself has it off.
DEFAULT_PLUGINS = frozenset(
    {
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "DefaultIngressClass",
        "DefaultStorageClass",
        "DefaultTolerationSeconds",
        "LimitRanger",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "NamespaceLifecycle",
        "NodeDeclaredFeatureValidator",
        "NodeRestriction",
        "PersistentVolumeClaimResize",
        "PodResizeValidator",
        "PodSecurity",
        "PodTopologyLabels",
        "Priority",
        "ResourceQuota",
        "RuntimeClass",
        "ServiceAccount",
        "StorageObjectInUseProtection",
        "TaintNodesByCondition",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
    }
)
IDLE_PLUGINS = frozenset(
    {"ClusterTrustBundleAttest", "JobValidation", "PodGroupProtection", "PodGroupWorkloadExists"}
)
"""Kubernetes has them on, and they do nothing while their feature gates are off, as they are by default. So
podling knows their names alone."""
OPTIONAL_PLUGINS = frozenset(
    {
        "AlwaysAdmit",
        "AlwaysDeny",
        "AlwaysPullImages",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "LimitPodHardAntiAffinityTopology",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "OwnerReferencesPermissionEnforcement",
        "PodNodeSelector",
        "PodTolerationRestriction",
    }
)
"""AlwaysAdmit is a name alone: it does nothing."""
ENABLE, DISABLE = "enable-admission-plugins", "disable-admission-plugins"


def chosen_plugins(enable: str, disable: str) -> frozenset[str]:
    """Those that are on, by names joined by commas. Raises ValueError, in Kubernetes' words."""
    on, off = (tuple(text.split(",")) if text else () for text in (enable, disable))
    known = DEFAULT_PLUGINS | IDLE_PLUGINS | OPTIONAL_PLUGINS
    faults = [
        f"{flag} plugin {quoted(name)} is unknown"
        for flag, names in ((ENABLE, on), (DISABLE, off))
        for name in names
        if name not in known
    ]
    if both := [name for name in on if name in off]:
        faults.append(f"[{' '.join(both)}] in {ENABLE} and {DISABLE} overlapped")
    if faults:
        raise ValueError(joined(faults))
    return (DEFAULT_PLUGINS | set(on)) - set(off)
