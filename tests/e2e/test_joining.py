"""R-SYS-2: how a machine comes to know a cluster by a bootstrap token, and what it is refused for: one
sentence, and nothing has changed.

The cluster is an API server and controllers; no machine gets as far as a runtime here
(`test_several_machines.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from peer import control_plane
from peer.server import Server, running
from podling.assemble.discovery import Joining, by_token, discovered
from podling.machine.start import StartError
from podling.model.errors import StatusError
from podling.model.types.core import ConfigMap, Secret
from podling.model.types.node import Node
from podling.model.types.pod import Pod

Completed = subprocess.CompletedProcess[str]


class Joined(NamedTuple):
    server: Server
    directory: Path

    def podling(self, *arguments: str) -> Completed:
        command = [sys.executable, "-m", "podling", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def token(self, *arguments: str) -> str:
        done = self.podling("token", *arguments, "--kubeconfig", str(self.server.kubeconfig))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def join_command(self, *arguments: str) -> list[str]:
        """Of a token that is new: what follows `podling`."""
        podling, *words = self.token("create", "--print-join-command", *arguments).split()
        assert podling == "podling"
        return words

    def refused(self, *arguments: str) -> str:
        """What a machine that joins is told; it has kept nothing."""
        data = self.directory / "machine"
        done = self.podling(*arguments, "--data-dir", str(data))
        assert done.returncode == 1, done.stdout
        assert not (data / "kubelet.conf").exists()
        assert not (data / "pki" / "kubelet-client-current.pem").exists()
        assert self.server.ask("GET", "/api/v1/nodes/newcomer").code == 404
        said, end = done.stderr.removeprefix("Error: "), "\n"
        assert said.count(end) == 1, done.stderr
        return said.rstrip()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joined]:
    directory = tmp_path_factory.mktemp("cluster")
    with control_plane.podling(directory) as server:
        pki = directory / "pki"
        command = [
            *(sys.executable, "-m", "podling", "controllers", "--kubeconfig", str(server.kubeconfig)),
            *("--cluster-signing-cert-file", str(pki / "ca.crt")),
            *("--cluster-signing-key-file", str(pki / "ca.key")),
        ]
        with running(command, directory / "controllers.log"):
            yield Joined(server, tmp_path_factory.mktemp("joining"))


def test_a_token_is_made_listed_and_deleted(cluster: Joined) -> None:
    made = cluster.token("create", "--ttl", "2h", "--description", "for the rack").strip()
    name, _ = made.split(".")
    heads, *rows = cluster.token("list").splitlines()
    assert heads.split("   ")[0] == "TOKEN"
    (row,) = [row for row in rows if row.startswith(made)]
    assert "119m" in row or "2h" in row
    assert row.endswith(
        "authentication,signing   for the rack   system:bootstrappers:kubeadm:default-node-token"
    )
    assert cluster.token("delete", name) == f'bootstrap token "{name}" deleted\n'
    done = cluster.podling("token", "delete", made, "--kubeconfig", str(cluster.server.kubeconfig))
    assert (done.returncode, done.stderr) == (1, f'Error: there is no bootstrap token "{name}" (NotFound)\n')


async def test_the_authority_is_found_by_token_and_hash(cluster: Joined) -> None:
    _, server, _, token, _, ca_hash = cluster.join_command()
    assert await discovered(Joining(server, token, [ca_hash])) == cluster.server.ca.read_bytes()


async def test_somebody_in_between_is_not_believed(cluster: Joined) -> None:
    """Who has the token could sign another authority, but not one with the hash."""
    _, server, _, token, _, ca_hash = cluster.join_command()
    with pytest.raises(StartError, match="it is another cluster, or somebody in between"):
        await discovered(Joining(server, token, [f"sha256:{'0' * 64}"]))
    with pytest.raises(StartError, match="with another secret"):
        await discovered(Joining(server, f"{token[:-1]}{'a' if token[-1] != 'a' else 'b'}", [ca_hash]))


def test_a_token_that_is_unknown_or_over_is_refused(cluster: Joined) -> None:
    _, server, _, token, _, ca_hash = cluster.join_command()
    said = 'the cluster knows no token "zzzzzz", or its time is over: make another where the cluster is, '
    said += "with `podling token create --print-join-command`"
    unknown = ["join", server, "--token", "zzzzzz.0123456789abcdef", "--ca-hash", ca_hash]
    assert cluster.refused(*unknown, "--node-name", "newcomer") == said
    cluster.token("delete", token)
    gone = cluster.refused("join", server, "--token", token, "--ca-hash", ca_hash, "--node-name", "newcomer")
    assert gone == said.replace("zzzzzz", token[:6])


def test_a_token_that_signs_and_opens_nothing_is_refused(cluster: Joined) -> None:
    """As one that ends between the two."""
    words = cluster.join_command()
    secret = f"/api/v1/namespaces/kube-system/secrets/bootstrap-token-{words[3][:6]}"
    patch = json.dumps({"stringData": {"usage-bootstrap-authentication": "false"}}).encode()
    assert cluster.server.ask("PATCH", secret, patch, Content_Type="application/merge-patch+json").code == 200
    assert cluster.refused(*words, "--node-name", "newcomer") == (
        "the token is not taken any more: make another where the cluster is, with "
        "`podling token create --print-join-command`"
    )


def test_a_hash_of_another_authority_is_refused(cluster: Joined) -> None:
    *words, ca_hash = cluster.join_command()
    said = cluster.refused(*words, f"sha256:{'ab' * 32}", "--node-name", "newcomer")
    assert said == (
        f"the authority of this cluster has the hash {ca_hash}, and none of --ca-hash: "
        "it is another cluster, or somebody in between"
    )


def test_a_name_that_another_node_has_is_refused(cluster: Joined) -> None:
    body = {"metadata": {"name": "taken"}}
    assert cluster.server.ask("POST", "/api/v1/nodes", body).code == 201
    status = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}).encode()
    merge = "application/merge-patch+json"
    path = "/api/v1/nodes/taken/status"
    assert cluster.server.ask("PATCH", path, status, Content_Type=merge).code == 200
    assert cluster.refused(*cluster.join_command(), "--node-name", "taken") == (
        'the cluster has a node "taken" already, and it is Ready: give another --node-name, '
        "or `kubectl delete node taken` first"
    )


def test_an_address_of_ipv6_is_refused(cluster: Joined) -> None:
    words = (*cluster.join_command(), "--node-name", "newcomer", "--node-ip", "fd00::2")
    said = "the pods of other nodes are reached over IPv4 alone; give an address of IPv4"
    assert cluster.refused(*words) == f"--node-ip fd00::2: {said}"


def test_what_is_no_server_is_refused(cluster: Joined) -> None:
    _, _, *rest = cluster.join_command()
    said = cluster.refused("join", "127.0.0.1:1", *rest, "--node-name", "newcomer")
    assert said.startswith("the API server at 127.0.0.1:1 cannot be reached: ")


def test_a_machine_that_has_not_joined_needs_to_be_told_where(cluster: Joined) -> None:
    assert cluster.refused("join", "--node-name", "newcomer") == (
        "this machine has joined no cluster: give HOST:PORT, --token and --ca-hash, as "
        "`podling token create --print-join-command` prints them there"
    )
    assert cluster.refused("leave").startswith("this machine has joined no cluster")


def test_a_cluster_in_a_data_directory_gets_no_other_server(cluster: Joined) -> None:
    where = cluster.server.ca.parent.parent
    config = ("--kubeconfig", str(cluster.server.kubeconfig))
    done = cluster.podling("token", "create", "--control-plane", "--data-dir", str(where), *config)
    assert (done.returncode, done.stderr) == (
        1,
        f"Error: {where} keeps the objects of this cluster, and several API servers share an etcd: "
        "`podling migrate-storage --to etcd` first\n",
    )
    of_node = cluster.join_command()
    assert cluster.refused(*of_node, "--control-plane", "--certificate-key", "ab" * 32) == (
        "the token is one of nodes, not of API servers: make another where an API server is, with "
        "`podling token create --control-plane`"
    )
    told = cluster.podling(*of_node, "--certificate-key", "ab" * 32)
    assert (told.returncode, "with --control-plane" in told.stderr) == (2, True)


def test_a_data_directory_with_a_cluster_of_its_own_does_not_join(cluster: Joined) -> None:
    done = cluster.podling(*cluster.join_command(), "--data-dir", str(cluster.server.ca.parent.parent))
    assert (done.returncode, done.stdout) == (1, "")


async def test_a_holder_of_a_token_reads_no_more_than_it_needs(cluster: Joined) -> None:
    """What threats.md says of one."""
    _, server, _, token, _, ca_hash = cluster.join_command()
    async with by_token(Joining(server, token, [ca_hash]), cluster.server.ca.read_bytes()) as client:
        assert (await client.get(Node, "taken")).metadata.name == "taken"
        for type_ in (Node, Secret, Pod, ConfigMap):
            with pytest.raises(StatusError) as refused:
                await client.list(type_)
            assert refused.value.code == 403
