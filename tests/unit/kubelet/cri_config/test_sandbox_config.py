"""A sandbox's whole configuration: what a kubelet tells the runtime about a known pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.cri_config.sandbox import sandbox_config
from podling.kubelet.pod.sandbox import NodeFacts, Resolver
from podling.model.types.container import ContainerPort
from podling.model.types.pod import Pod, PodSecurityContext, Sysctl

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

NODE = NodeFacts(name="n1", resolver=Resolver(("1.1.1.1",), ("home",), ("rotate",)))


def made_for(pod: Pod) -> pb.PodSandboxConfig:
    return sandbox_config(pod, 3, NODE, log_directory="/logs/ns_p_u1", cgroup_parent="/podling/podu1")


def test_what_the_runtime_is_told(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    pod.metadata.labels, pod.metadata.annotations = {"app": "x"}, {"note": "y"}
    pod.spec.security_context = PodSecurityContext(sysctls=[Sysctl(name="net.ipv4.ip_forward", value="1")])
    made = made_for(pod)
    meta = made.metadata
    assert (meta.name, meta.namespace, meta.uid, meta.attempt) == ("p", "ns", "u1", 3)
    assert (made.hostname, made.log_directory) == ("p", "/logs/ns_p_u1")
    assert dict(made.labels) == {
        "app": "x",
        "io.kubernetes.pod.name": "p",
        "io.kubernetes.pod.namespace": "ns",
        "io.kubernetes.pod.uid": "u1",
    }
    assert dict(made.annotations) == {"note": "y"}
    assert made.dns_config == pb.DNSConfig(servers=["1.1.1.1"], searches=["home"], options=["rotate"])
    assert made.linux.cgroup_parent == "/podling/podu1"
    assert dict(made.linux.sysctls) == {"net.ipv4.ip_forward": "1"}
    assert made.linux.security_context.seccomp.profile_type == pb.SecurityProfile.RuntimeDefault


def test_host_ports_are_mapped_unless_the_pod_is_in_the_nodes_network(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    pod.spec.containers[0].ports = [
        ContainerPort(container_port=80),
        ContainerPort(container_port=53, host_port=5353, protocol="UDP", host_ip="127.0.0.1"),
    ]
    mapped = pb.PortMapping(protocol=pb.UDP, container_port=53, host_port=5353, host_ip="127.0.0.1")
    assert list(made_for(pod).port_mappings) == [mapped]
    pod.spec.host_network = True
    made = made_for(pod)
    assert (list(made.port_mappings), made.hostname) == ([], "")
    assert made.linux.security_context.namespace_options.network == pb.NODE
