"""What `podling cp` is told: places, names in archives, and the script that looks in the pod, run here."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from podling.debug.container import WishError
from podling.debug.places import LOOK, Looked, Place, container_of, looked, parts_of, place, user_of
from podling.model.codec import json
from podling.model.types.pod import Pod


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("file", Place("file")),
        ("web:/a:b", Place("/a:b", "web")),
        ("shop/web:a", Place("a", "web", "shop")),
        ("./web:a", Place("./web:a")),
        ("/a:b", Place("/a:b")),
    ],
)
def test_a_place_is_here_or_in_a_pod(text: str, found: Place) -> None:
    assert place(text) == found


@pytest.mark.parametrize("text", [":/a", "web:", "a/b/c:/d", "ns/:/d"])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(WishError, match="give PATH, POD:PATH"):
        place(text)


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "a/..", "..", "a\0b"])
def test_a_name_that_leaves_the_directory_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="leaves the directory"):
        parts_of(name)


def test_other_names_are_components() -> None:
    assert parts_of("./a//b/./c..d/...") == ("a", "b", "c..d", "...")
    assert parts_of(".") == ()


def pod(**more: Any) -> Pod:
    metadata = more.pop("metadata", {})
    app = {"name": "app", "image": "i", **more.pop("app", {})}
    spec = {"containers": [app, {"name": "b", "image": "i"}], **more.pop("spec", {})}
    return json.from_data({"metadata": {"name": "web", **metadata}, "spec": spec, "status": more}, Pod)


def test_the_container_and_its_user_are_found() -> None:
    assert container_of(pod(), "") == "app"
    default = {"annotations": {"kubectl.kubernetes.io/default-container": "b"}}
    assert container_of(pod(metadata=default), "") == "b"
    with pytest.raises(WishError, match="no container c: there are app, b"):
        container_of(pod(), "c")
    assert user_of(pod(), "app") == (0, 0)
    assert user_of(pod(spec={"securityContext": {"runAsUser": 5, "runAsGroup": 6}}), "app") == (5, 6)
    both = pod(spec={"securityContext": {"runAsUser": 5}}, app={"securityContext": {"runAsUser": 0}})
    assert user_of(both, "app") == (0, 0)
    said = [{"name": "app", "user": {"linux": {"uid": 7, "gid": 8}}}]
    assert user_of(pod(containerStatuses=said), "app") == (7, 8)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The files of a container, whose links are meant within it."""
    made = tmp_path / "root"
    (made / "data/in n\ner").mkdir(parents=True)
    (made / "data/file").write_bytes(b"12345")
    (made / "links").mkdir()
    for name, target in {
        "absolute": "/data",
        "up": "../../../../../data/in n\ner",
        "chain": "absolute/file",
        "loop": "loop",
        "dangling": "/data/none",
        "newline": "/data/new\n",
    }.items():
        (made / "links" / name).symlink_to(target)
    (tmp_path / "secret").write_text("not of the container")
    return made


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/data/file", Looked("file", 5, "/data/file")),
        ("data//./in n\ner/", Looked("directory", 0, "/data/in n\ner")),
        ("/links/absolute/file", Looked("file", 5, "/data/file")),
        ("/links/chain", Looked("file", 5, "/data/file")),
        ("/links/up/..", Looked("directory", 0, "/data")),
        ("/../../secret", Looked("missing", 0, "/secret")),
        ("/links/dangling", Looked("missing", 0, "/data/none")),
        ("/links/newline", Looked("missing", 0, "/data/new\n")),
        ("/none/none", Looked("nowhere", 0, "/none/none")),
        ("/", Looked("directory", 0, "/")),
    ],
)
def test_links_are_followed_as_within_the_container(root: Path, path: str, found: Looked) -> None:
    done = subprocess.run(["sh", "-c", LOOK, "sh", str(root), path], capture_output=True, check=True)
    assert looked(done.stdout) == found


def test_links_in_a_circle_are_told_of(root: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", LOOK, "sh", str(root), "/links/loop/x"], capture_output=True, check=False
    )
    assert done.returncode == 3 and b"too many symbolic links" in done.stderr
