"""A pod sandbox's configuration for the runtime, exactly as a kubelet writes it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.node.node_facts import NodeFacts
from podling.kubelet.runtime_config.dns import pod_resolver, sandbox_hostname
from podling.kubelet.runtime_config.resources_config import overhead_resources, sandbox_resources
from podling.kubelet.runtime_config.runtime_labels import pod_labels
from podling.kubelet.runtime_config.security import NODES_USERS, sandbox_security
from podling.model.pod import Pod

_PROTOCOLS = {"": pb.TCP, "TCP": pb.TCP, "UDP": pb.UDP, "SCTP": pb.SCTP}


def sandbox_config(
    pod: Pod,
    attempt: int,
    node: NodeFacts,
    *,
    log_directory: str,
    cgroup_parent: str,
    users: pb.UserNamespace = NODES_USERS,
) -> pb.PodSandboxConfig:
    """Raises ConfigError when the pod may not run so."""
    meta = pod.metadata
    resolver = pod_resolver(pod, node)
    context = pod.spec.security_context
    return pb.PodSandboxConfig(
        metadata=pb.PodSandboxMetadata(
            name=meta.name, uid=meta.uid, namespace=meta.namespace, attempt=attempt
        ),
        hostname=sandbox_hostname(pod, node.cluster_domain),
        log_directory=log_directory,
        dns_config=pb.DNSConfig(
            servers=resolver.servers, searches=resolver.searches, options=resolver.options
        ),
        port_mappings=_port_mappings(pod),
        labels=pod_labels(pod),
        annotations=meta.annotations,
        linux=pb.LinuxPodSandboxConfig(
            cgroup_parent=cgroup_parent,
            security_context=sandbox_security(pod, users),
            sysctls={sysctl.name: sysctl.value for sysctl in context.sysctls} if context else {},
            overhead=overhead_resources(pod),
            resources=sandbox_resources(pod),
        ),
    )


def _port_mappings(pod: Pod) -> Iterator[pb.PortMapping]:
    """A pod in the node's network has its ports on the node already."""
    if pod.spec.host_network:
        return
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for port in container.ports:
            if port.host_port:
                yield pb.PortMapping(
                    protocol=_PROTOCOLS[port.protocol],
                    container_port=port.container_port,
                    host_port=port.host_port,
                    host_ip=port.host_ip,
                )
