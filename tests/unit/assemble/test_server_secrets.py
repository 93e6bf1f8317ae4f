"""What a further API server is handed opens for nobody else, and nothing is handed over that is of no use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.assemble.join_server import check_new
from podling.assemble.server_secrets import FILES, Handed, new_key, read, seal, unseal
from podling.assemble.settle import EncryptionOptions, EtcdOptions
from podling.assemble.shared import Shared, keep, kept, shared
from podling.assemble.up import UpOptions, as_before
from podling.machine.instance import Choices, Instance
from podling.machine.start import StartError, hold

SHARED = Shared(("https://192.0.2.1:2379",), 6443, "10.96.0.0/16", "10.64.0.0/14", ca="/etc/etcd/ca.crt")
HANDED = Handed("uid", SHARED, {"ca.crt": b"certificate", "etcd/ca.crt": b"\xff"})
KEY = "ab" * 32


def test_what_is_handed_over_opens_with_its_key_and_token_alone() -> None:
    sealed = seal(HANDED, KEY, "abcdef")
    assert unseal(sealed, KEY, "abcdef") == HANDED
    assert b"certificate" not in sealed
    for key, token in ((new_key(), "abcdef"), (KEY, "abcdee")):
        with pytest.raises(StartError, match=r"^--certificate-key is not the one that was printed"):
            unseal(sealed, key, token)
    assert seal(HANDED, KEY, "abcdef") != sealed


SEALED = seal(HANDED, KEY, "abcdef")


@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
def test_what_was_changed_on_its_way_is_refused(at: int, change: int) -> None:
    changed = bytearray(SEALED)
    changed[at] ^= change
    with pytest.raises(StartError):
        unseal(bytes(changed), KEY, "abcdef")
    with pytest.raises(StartError):
        unseal(SEALED[:at], KEY, "abcdef")


@contextmanager
def serving(directory: Path, of: Shared = SHARED) -> Iterator[Instance]:
    """A machine whose API server runs."""
    instance = Instance.at(directory / "data")
    instance.have_data_dir()
    for name in FILES:
        (file := instance.pki_dir / name).parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(name.encode())
    instance.etcd_cluster.write_text("uid")
    keep(instance, of)
    with hold(instance):
        yield instance


def test_a_server_hands_over_what_others_trust(tmp_path: Path) -> None:
    (ca := tmp_path / "etcd.crt").write_bytes(b"of etcd")
    of = shared(EtcdOptions(("https://192.0.2.1",), ca), 6443, "10.96.0.0/16")
    with serving(tmp_path, of) as instance:
        handed = read(instance, b"ca.crt")
    assert handed == Handed("uid", of, {name: name.encode() for name in FILES} | {"etcd/ca.crt": b"of etcd"})


def test_who_can_hand_over_nothing_says_why(tmp_path: Path) -> None:
    near = shared(EtcdOptions(("http://127.0.0.1:2379", "http://localhost")), 6443, "10.96.0.0/16")
    with (
        serving(tmp_path, near) as instance,
        pytest.raises(StartError, match=r"^other machines do not reach an etcd at http://127.0.0.1:2379"),
    ):
        read(instance, b"ca.crt")
    with serving(tmp_path, shared(EtcdOptions(("http://192.0.2.1",)), 6443, "")) as instance:
        with pytest.raises(StartError, match=r"^the kubeconfig is of another cluster than "):
            read(instance, b"another")
        (instance.pki_dir / "ca.key").unlink()
        with pytest.raises(StartError, match=r"^what another API server needs cannot be read: .*ca.key"):
            read(instance, b"ca.crt")
    with pytest.raises(StartError, match=r"^no API server runs here"):
        read(instance, b"ca.crt")
    instance.shared_file.unlink()
    with pytest.raises(StartError, match="is of no API server"):
        read(instance, b"ca.crt")
    instance.database.touch()
    with pytest.raises(StartError, match=r"`podling migrate-storage --to etcd` first$"):
        read(instance, b"ca.crt")


def test_a_machine_that_is_part_of_a_cluster_joins_no_other(tmp_path: Path) -> None:
    instance = Instance.at(tmp_path)
    check_new(instance)
    for file, why in (
        (instance.etcd_cluster, "has a cluster of its own"),
        (instance.joined_kubeconfig, "is a node of a cluster already"),
        (instance.shared_file, "is an API server already"),
    ):
        file.touch()
        with pytest.raises(StartError, match=why):
            check_new(instance)


def test_a_start_is_as_the_last_one(tmp_path: Path) -> None:
    instance = Instance.at(tmp_path)
    options = UpOptions(instance)
    assert as_before(options) == (options, "")
    etcd = EtcdOptions(("http://192.0.2.1",), None, Path("/c"), Path("/k"))
    keep(instance, shared(etcd, 6443, "10.96.0.0/16", "10.64.0.0/14", "beta", "192.0.2.7"))
    instance.keep(Choices(1, 6443, "10.64.7.0/24", "10.96.0.0/16"))
    found, subnet = as_before(options)
    assert (found.etcd, found.node.name, found.address, found.cluster_cidr, subnet) == (
        etcd,
        "beta",
        "192.0.2.7",
        "10.64.0.0/14",
        "10.64.7.0/24",
    )
    others = EtcdOptions(("http://192.0.2.2",))
    assert as_before(UpOptions(instance, etcd=others))[0].etcd == others
    with pytest.raises(StartError, match="cannot be used with objects in etcd"):
        as_before(UpOptions(instance, encryption=EncryptionOptions(Path("/keys"))))


def test_what_was_kept_and_cannot_be_read_is_said(tmp_path: Path) -> None:
    instance = Instance.at(tmp_path)
    instance.shared_file.write_text("{")
    with pytest.raises(StartError, match="say again with --etcd-servers"):
        kept(instance)
