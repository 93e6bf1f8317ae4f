"""A pod's host name, and its resolver from dnsPolicy and dnsConfig. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from podling.kubelet.pod.faults import ConfigError
from podling.kubelet.pod.node_facts import NodeFacts, Resolver
from podling.model.types.pod import Pod, PodDNSConfig

LONGEST_HOSTNAME = 63
LONGEST_FQDN = 64
MOST_SERVERS = 3
MOST_SEARCHES = 32
LONGEST_SEARCH = 253
LONGEST_SEARCH_LINE = 2048


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
            f"({LONGEST_FQDN} is the max, {len(fqdn)} characters requested)"
        )
    return fqdn


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
    """The pod's resolver, cut to Kubernetes' limits; `dns_warnings` says what was left out."""
    wanted = _wanted(pod, node)
    return Resolver(wanted.servers[:MOST_SERVERS], _searches_that_fit(wanted.searches), wanted.options)


def dns_warnings(pod: Pod, node: NodeFacts) -> Iterator[str]:
    wanted, applied = _wanted(pod, node), pod_resolver(pod, node)
    if applied.servers != wanted.servers:
        yield (
            "Nameserver limits were exceeded, some nameservers have been omitted, "
            f"the applied nameserver line is: {' '.join(applied.servers)}"
        )
    if applied.searches != wanted.searches:
        yield (
            "Search Line limits were exceeded, some search paths have been omitted, "
            f"the applied search line is: {' '.join(applied.searches)}"
        )


def _searches_that_fit(wanted: tuple[str, ...]) -> tuple[str, ...]:
    searches = [search for search in wanted[:MOST_SEARCHES] if len(search) <= LONGEST_SEARCH]
    while len(" ".join(searches)) > LONGEST_SEARCH_LINE:
        searches.pop()
    return tuple(searches)


def _wanted(pod: Pod, node: NodeFacts) -> Resolver:
    resolver = _by_policy(pod, node)
    return _with_config(resolver, pod.spec.dns_config) if pod.spec.dns_config else resolver


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
