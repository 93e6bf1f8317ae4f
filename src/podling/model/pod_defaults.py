"""What a pod's writer may leave out, and what Kubernetes then fills in.

Pods and pod templates share `default_pod_spec`; what depends on being a pod, and not a template of one, is in
`default_pod`. Objects are changed in place.
"""

from __future__ import annotations

from podling.model.container import Container, ResourceRequirements
from podling.model.container_defaults import default_container
from podling.model.pod import Pod, PodSecurityContext, PodSpec
from podling.model.resources import container_requests, is_supported_at_pod_level
from podling.model.volume_containers import volume_containers
from podling.model.volume_defaults import default_volume

RESTART_POLICY = "Always"
DNS_POLICY = "ClusterFirst"
GRACE_PERIOD_SECONDS = 30
SCHEDULER = "default-scheduler"
SHARED = ("cpu", "memory")
"""Of what a pod may limit as a whole, the resources its containers share; huge pages they do not."""


def default_pod(pod: Pod) -> None:
    spec = pod.spec
    default_pod_spec(spec)
    for container in (*volume_containers(spec), *spec.init_containers, *spec.containers):
        _request_what_is_limited(container)
        if spec.host_network:
            _publish_on_host(container)
    if spec.resources is not None and spec.resources.limits:
        _request_for_the_whole(spec, spec.resources)
    if spec.enable_service_links is None:
        spec.enable_service_links = True


def default_pod_spec(spec: PodSpec) -> None:
    spec.restart_policy = spec.restart_policy or RESTART_POLICY
    spec.dns_policy = spec.dns_policy or DNS_POLICY
    spec.scheduler_name = spec.scheduler_name or SCHEDULER
    if spec.termination_grace_period_seconds is None:
        spec.termination_grace_period_seconds = GRACE_PERIOD_SECONDS
    elif spec.termination_grace_period_seconds < 0:
        spec.termination_grace_period_seconds = 1
    if spec.security_context is None:
        spec.security_context = PodSecurityContext()
    _mirror_service_account(spec)
    for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
        default_container(container)
    for volume in spec.volumes:
        default_volume(volume)


def _mirror_service_account(spec: PodSpec) -> None:
    """`serviceAccount` is the deprecated name of `serviceAccountName`, which wins."""
    spec.service_account_name = spec.service_account_name or spec.service_account
    spec.service_account = spec.service_account_name


def _request_what_is_limited(container: Container) -> None:
    resources = container.resources
    missing = {name: limit for name, limit in resources.limits.items() if name not in resources.requests}
    if missing:
        resources.requests = {**resources.requests, **missing}


def _request_for_the_whole(spec: PodSpec, whole: ResourceRequirements) -> None:
    """A pod that is limited requests what its containers do, and where they say nothing, its limits."""
    together = container_requests(spec)
    missing = {
        name: together.get(name, limit) if name in SHARED else limit
        for name, limit in whole.limits.items()
        if is_supported_at_pod_level(name)
    }
    missing |= {name: amount for name, amount in together.items() if name in SHARED}
    whole.requests = missing | whole.requests


def _publish_on_host(container: Container) -> None:
    for port in container.ports:
        port.host_port = port.host_port or port.container_port
