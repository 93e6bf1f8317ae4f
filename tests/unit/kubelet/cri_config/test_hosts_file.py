"""A pod's /etc/hosts, byte for byte."""

from podling.kubelet.cri_config.sandbox import host_network_hosts_file, hosts_file
from podling.model.types.pod import HostAlias

FIXED = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


def test_a_pod_finds_itself() -> None:
    assert hosts_file(("10.0.0.7", "fd00::7"), "web", "", ()) == f"{FIXED}10.0.0.7\tweb\nfd00::7\tweb\n"


def test_a_pod_with_a_subdomain_has_its_full_name_first() -> None:
    text = hosts_file(("10.0.0.7",), "web", "db.ns.svc.cluster.local", ())
    assert text == f"{FIXED}10.0.0.7\tweb.db.ns.svc.cluster.local\tweb\n"


def test_aliases_come_last_under_their_heading() -> None:
    aliases = [HostAlias(ip="192.0.2.1", hostnames=["a", "b"])]
    text = host_network_hosts_file("127.0.0.1 me\n", aliases)
    assert text == (
        "# Kubernetes-managed hosts file (host network).\n127.0.0.1 me\n"
        "\n# Entries added by HostAliases.\n192.0.2.1\ta\tb\n"
    )
