"""The ids of pods with users of their own: apart from each other's, and the same for as long as the pod is
here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFeatures
from podling.kubelet.pod.containers import ConfigError
from podling.kubelet.pod.sandbox import LENGTH, RANGES, check_handler, user_namespace
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec


def pod(uid: str, host_users: bool | None = False) -> Pod:
    return Pod(metadata=ObjectMeta(uid=uid), spec=PodSpec(host_users=host_users))


def first(pods_dir: Path, uid: str, chosen: int = 0) -> int:
    """Of the ids the pod has on the node, in multiples of what each has."""
    made = user_namespace(pods_dir, pod(uid), lambda bound: chosen)
    (mapping,) = made.uids
    assert (made.mode, list(made.gids), mapping.length, mapping.container_id) == (
        pb.POD,
        [mapping],
        LENGTH,
        0,
    )
    index, rest = divmod(mapping.host_id, LENGTH)
    assert not rest
    return index


def test_no_two_pods_share_ids_whatever_is_chosen(tmp_path: Path) -> None:
    assert [first(tmp_path, uid, chosen=7) for uid in "abc"] == [8, 9, 10]


def test_neither_the_nodes_own_ids_nor_nobodys_are_given(tmp_path: Path) -> None:
    assert first(tmp_path, "a", chosen=RANGES - 1) == RANGES
    assert (RANGES + 1) * LENGTH <= (1 << 32) - LENGTH
    assert first(tmp_path, "b", chosen=RANGES - 1) == 1


def test_a_pod_keeps_its_ids(tmp_path: Path) -> None:
    assert first(tmp_path, "a", chosen=3) == first(tmp_path, "a", chosen=5) == 4


def test_what_goes_with_a_pod_is_free_again(tmp_path: Path) -> None:
    first(tmp_path, "a")
    shutil.rmtree(tmp_path / "a")
    assert first(tmp_path, "b") == 1


def test_it_is_written_as_every_kubelet_writes_it(tmp_path: Path) -> None:
    first(tmp_path, "a")
    mapping = [{"hostId": 65536, "containerId": 0, "length": 65536}]
    assert json.loads((tmp_path / "a/userns").read_text()) == {"uidMappings": mapping, "gidMappings": mapping}


@pytest.mark.parametrize("asked", [None, True])
def test_who_does_not_ask_has_the_nodes_users(tmp_path: Path, asked: bool | None) -> None:
    assert user_namespace(tmp_path, pod("a", asked)) == pb.UserNamespace(mode=pb.NODE)
    assert not list(tmp_path.iterdir())


def mapping(host: int = LENGTH, inside: int = 0, length: int = LENGTH) -> dict[str, int]:
    return {"hostId": host, "containerId": inside, "length": length}


WRONG = [
    ("", "invalid user namespace mappings file"),
    ({"uidMappings": [mapping()], "gidMappings": []}, "must have one mapping"),
    ({"uidMappings": [mapping()] * 2, "gidMappings": [mapping()] * 2}, "must have one mapping"),
    ({"uidMappings": [mapping()], "gidMappings": [mapping(2 * LENGTH)]}, "must have one mapping"),
    (mapping(LENGTH + 1), "does not map root"),
    (mapping(0), "does not map root"),
    (mapping((1 << 32) - LENGTH), "does not map root"),
    (mapping(inside=1), "does not map root"),
    (mapping(length=1), "does not map root"),
]


@pytest.mark.parametrize(("written", "why"), WRONG)
def test_a_file_that_cannot_be_ours_gives_nobody_ids(tmp_path: Path, written: object, why: str) -> None:
    """Who does not know what is taken must not give."""
    if isinstance(written, dict) and "hostId" in written:
        written = {"uidMappings": [written], "gidMappings": [written]}
    (tmp_path / "a").mkdir()
    (tmp_path / "a/userns").write_text(json.dumps(written) if written else "")
    for uid in ("a", "b"):
        with pytest.raises(ConfigError, match=why):
            first(tmp_path, uid)


FEATURES = RuntimeFeatures(handlers=frozenset({"", "kata"}), user_namespaces=frozenset({""}))
CANNOT = "can't set `spec.hostUsers: false`, "


@pytest.mark.parametrize(
    ("features", "handler", "why"),
    [
        (RuntimeFeatures(), "", "runtime does not support user namespaces"),
        (FEATURES, "kata", 'RuntimeClass handler "kata" does not support user namespaces'),
        (
            FEATURES,
            "runc",
            'RuntimeClass handler "runc" does not support user namespaces: the handler "runc" is not known',
        ),
    ],
)
def test_a_handler_that_cannot_is_named(features: RuntimeFeatures, handler: str, why: str) -> None:
    check_handler(FEATURES, "")
    with pytest.raises(ConfigError) as refusal:
        check_handler(features, handler)
    assert str(refusal.value) == CANNOT + why
