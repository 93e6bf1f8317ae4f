"""Verbs, API groups and `may`, with which the tables of roles are written. Pure data."""

from __future__ import annotations

from podling.model.types.rbac import PolicyRule

LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
CORE, APPS, BATCH, EXTENSIONS, POLICY = "", "apps", "batch", "extensions", "policy"
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
CERTIFICATES, COORDINATION, DISCOVERY = "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io"
NETWORKING, STORAGE, DEVICES = "networking.k8s.io", "storage.k8s.io", "resource.k8s.io"


def may(verbs: str, group: str | tuple[str, ...], resources: str, names: str = "") -> PolicyRule:
    """A PolicyRule. Everything in it is sorted, as Kubernetes writes it."""
    return PolicyRule(
        verbs=sorted(verbs.split()),
        api_groups=[group] if isinstance(group, str) else sorted(group),
        resources=sorted(resources.split()),
        resource_names=sorted(names.split()),
    )


def may_get(paths: str) -> PolicyRule:
    return PolicyRule(verbs=["get"], non_resource_urls=sorted(paths.split()))


EVENTS = may("create patch update", (CORE, "events.k8s.io"), "events")
