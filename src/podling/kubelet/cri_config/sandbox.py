"""The CRI's PodSandboxConfig and the pod's /etc/hosts, as Kubernetes' kubelet writes them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.cri_config.container import overhead_resources, pod_labels, sandbox_resources
from podling.kubelet.cri_config.dns import pod_resolver, sandbox_hostname
from podling.kubelet.cri_config.security import NODES_USERS, sandbox_security
from podling.kubelet.pod.node_facts import NodeFacts
from podling.model.types.pod import HostAlias, Pod

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
    """Raises ConfigError for a host name that is too long."""
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
    """None with hostNetwork: those ports are on the node already."""
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


_MANAGED = "# Kubernetes-managed hosts file.\n"
_MANAGED_HOST_NETWORK = "# Kubernetes-managed hosts file (host network).\n"
_FIXED = (
    "127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\n"
    "fe00::1\tip6-allnodes\n"
    "fe00::2\tip6-allrouters\n"
)


def hosts_file(ips: Iterable[str], hostname: str, domain: str, aliases: Sequence[HostAlias]) -> str:
    """/etc/hosts of a pod without hostNetwork; `domain` is "" unless the pod has a subdomain."""
    names = f"{hostname}.{domain}\t{hostname}" if domain else hostname
    own = "".join(f"{ip}\t{names}\n" for ip in ips)
    return f"{_MANAGED}{_FIXED}{own}{_alias_lines(aliases)}"


def host_network_hosts_file(node_file: str, aliases: Sequence[HostAlias]) -> str:
    return f"{_MANAGED_HOST_NETWORK}{node_file}{_alias_lines(aliases)}"


def _alias_lines(aliases: Sequence[HostAlias]) -> str:
    if not aliases:
        return ""
    lines = "".join("\t".join((alias.ip, *alias.hostnames)) + "\n" for alias in aliases)
    return f"\n# Entries added by HostAliases.\n{lines}"
