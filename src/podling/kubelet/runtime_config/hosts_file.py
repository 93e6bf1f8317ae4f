"""A pod's /etc/hosts, as every kubelet writes it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podling.model.pod import HostAlias

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
    """For a pod with a network of its own; `domain` is "" unless the pod has a subdomain."""
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
