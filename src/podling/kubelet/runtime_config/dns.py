"""A pod's names: its own, and how it finds those of others (dnsPolicy, dnsConfig). Pure."""

from __future__ import annotations

from podling.kubelet.node.node_facts import NodeFacts, Resolver
from podling.model.pod import Pod, PodDNSConfig

LONGEST_HOSTNAME = 63
MOST_SERVERS = 3
MOST_SEARCHES = 32


def hostname_and_domain(pod: Pod, cluster_domain: str) -> tuple[str, str]:
    """The host name without its domain, and the domain, "" when the pod has none."""
    if pod.spec.hostname_override:
        return pod.spec.hostname_override, ""
    name = pod.spec.hostname or pod.metadata.name
    subdomain = pod.spec.subdomain
    domain = f"{subdomain}.{pod.metadata.namespace}.svc.{cluster_domain}" if subdomain else ""
    return name[:LONGEST_HOSTNAME].rstrip("-."), domain


def sandbox_hostname(pod: Pod, cluster_domain: str) -> str:
    """What the pod's processes see as host name; a pod in the node's network keeps the node's."""
    if pod.spec.host_network and not pod.spec.hostname_override:
        return ""
    name, domain = hostname_and_domain(pod, cluster_domain)
    return f"{name}.{domain}" if domain and pod.spec.set_hostname_as_fqdn else name


def parse_resolv_conf(text: str) -> Resolver:
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
    resolver = _by_policy(pod, node)
    if pod.spec.dns_config:
        resolver = _with_config(resolver, pod.spec.dns_config)
    return Resolver(resolver.servers[:MOST_SERVERS], resolver.searches[:MOST_SEARCHES], resolver.options)


def _by_policy(pod: Pod, node: NodeFacts) -> Resolver:
    policy = pod.spec.dns_policy
    if policy == "None":
        return Resolver()
    in_cluster = policy == "ClusterFirstWithHostNet" or (
        policy == "ClusterFirst" and not pod.spec.host_network
    )
    if not in_cluster or not node.cluster_dns:
        return node.resolver
    domain = node.cluster_domain
    searches = (f"{pod.metadata.namespace}.svc.{domain}", f"svc.{domain}", domain)
    return Resolver(node.cluster_dns, _distinct(searches + node.resolver.searches), ("ndots:5",))


def _with_config(resolver: Resolver, config: PodDNSConfig) -> Resolver:
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
