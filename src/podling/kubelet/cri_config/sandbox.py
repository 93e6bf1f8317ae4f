"""The CRI's PodSandboxConfig, with the pod's host name and resolver, and the pod's /etc/hosts, as Kubernetes'
kubelet writes them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.cri_config.container import overhead_resources, pod_labels, sandbox_resources
from podling.kubelet.cri_config.security import NODES_USERS, sandbox_security
from podling.kubelet.pod.containers import ConfigError
from podling.kubelet.pod.sandbox import NodeFacts, Resolver
from podling.model.types.pod import HostAlias, Pod

LONGEST_HOSTNAME = 63
LONGEST_FQDN = 64
MOST_SERVERS = 3
FORMING = "DNSConfigForming"
MISSING_DNS = "MissingClusterDNS"
NO_DNS = (
    'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. '
    'Falling back to "Default" policy.'
)
MOST_SEARCHES = 32
LONGEST_SEARCH = 253
LONGEST_SEARCH_LINE = 2048
_PROTOCOLS = {"": pb.TCP, "TCP": pb.TCP, "UDP": pb.UDP, "SCTP": pb.SCTP}
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
    # With hostNetwork the ports are on the node already.
    containers = () if pod.spec.host_network else (*pod.spec.init_containers, *pod.spec.containers)
    return pb.PodSandboxConfig(
        metadata=pb.PodSandboxMetadata(
            name=meta.name, uid=meta.uid, namespace=meta.namespace, attempt=attempt
        ),
        hostname=sandbox_hostname(pod, node.cluster_domain),
        log_directory=log_directory,
        dns_config=pb.DNSConfig(
            servers=resolver.servers, searches=resolver.searches, options=resolver.options
        ),
        port_mappings=[
            pb.PortMapping(
                protocol=_PROTOCOLS[port.protocol],
                container_port=port.container_port,
                host_port=port.host_port,
                host_ip=port.host_ip,
            )
            for container in containers
            for port in container.ports
            if port.host_port
        ],
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


def hostname_and_domain(pod: Pod, cluster_domain: str) -> tuple[str, str]:
    """The host name without its domain, and the domain, "" without a subdomain."""
    if pod.spec.hostname_override:
        return pod.spec.hostname_override, ""
    name = pod.spec.hostname or pod.metadata.name
    subdomain = pod.spec.subdomain
    domain = f"{subdomain}.{pod.metadata.namespace}.svc.{cluster_domain}" if subdomain else ""
    return name[:LONGEST_HOSTNAME].rstrip("-."), domain


def sandbox_hostname(pod: Pod, cluster_domain: str) -> str:
    """The host name inside the pod; "" (the node's) with hostNetwork. Raises ConfigError for an FQDN that is
    longer than the kernel allows."""
    if pod.spec.host_network and not pod.spec.hostname_override:
        return ""
    name, domain = hostname_and_domain(pod, cluster_domain)
    if not domain or not pod.spec.set_hostname_as_fqdn:
        return name
    fqdn = f"{name}.{domain}"
    if len(fqdn) > LONGEST_FQDN:
        raise ConfigError(
            f"failed to construct FQDN from pod hostname and cluster domain, FQDN {fqdn} is too long "
            f"({LONGEST_FQDN} characters is the max, {len(fqdn)} characters requested)"
        )
    return fqdn


def parse_resolv_conf(text: str) -> Resolver:
    """resolv.conf(5); lines of other keywords are left out."""
    servers: list[str] = []
    searches: list[str] = []
    options: list[str] = []
    for line in text.splitlines():
        match line.partition("#")[0].partition(";")[0].split():
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search", *domains]:
                # Only the last search line counts.
                searches = [d if d == "." else d.removesuffix(".") for d in domains]
            case ["options", *words]:
                options.extend(words)
    return Resolver(tuple(servers), tuple(searches), tuple(options))


def pod_resolver(pod: Pod, node: NodeFacts) -> Resolver:
    """The pod's resolver, cut to Kubernetes' limits; `dns_warnings` says what was left out."""
    wanted = _wanted(pod, node)
    searches = [search for search in wanted.searches[:MOST_SEARCHES] if len(search) <= LONGEST_SEARCH]
    while len(" ".join(searches)) > LONGEST_SEARCH_LINE:
        searches.pop()
    return Resolver(wanted.servers[:MOST_SERVERS], tuple(searches), wanted.options)


def dns_warnings(pod: Pod, node: NodeFacts) -> Iterator[tuple[str, str]]:
    """Reason and message of events about what `pod_resolver` has cut off, or could not do."""
    wanted, applied = _wanted(pod, node), pod_resolver(pod, node)
    if _is_in_cluster(pod) and not node.cluster_dns:
        meta = pod.metadata
        yield MISSING_DNS, f'pod: "{meta.name}_{meta.namespace}({meta.uid})". {NO_DNS}'
    if applied.servers != wanted.servers:
        yield (
            FORMING,
            "Nameserver limits were exceeded, some nameservers have been omitted, "
            f"the applied nameserver line is: {' '.join(applied.servers)}",
        )
    if applied.searches != wanted.searches:
        yield (
            FORMING,
            "Search Line limits were exceeded, some search paths have been omitted, "
            f"the applied search line is: {' '.join(applied.searches)}",
        )


def _is_in_cluster(pod: Pod) -> bool:
    policy = pod.spec.dns_policy
    return policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not pod.spec.host_network)


def _wanted(pod: Pod, node: NodeFacts) -> Resolver:
    """By dnsPolicy and dnsConfig, before Kubernetes' limits."""
    domain = node.cluster_domain
    if pod.spec.dns_policy == "None":
        resolver = Resolver()
    elif _is_in_cluster(pod) and node.cluster_dns:
        searches = (f"{pod.metadata.namespace}.svc.{domain}", f"svc.{domain}", domain)
        resolver = Resolver(node.cluster_dns, _distinct(searches + node.resolver.searches), ("ndots:5",))
    else:
        resolver = node.resolver
    config = pod.spec.dns_config
    if config is None:
        return resolver
    options = {option.partition(":")[0]: option for option in resolver.options}
    for given in config.options:
        options[given.name] = given.name if given.value is None else f"{given.name}:{given.value}"
    return Resolver(
        _distinct((*resolver.servers, *config.nameservers)),
        _distinct((*resolver.searches, *config.searches)),
        tuple(options.values()),
    )


def _distinct(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
