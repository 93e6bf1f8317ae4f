"""Image names: default tags, what is no name, and which credentials are for which registry."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.images.reference import InvalidReference, Repository, covers, place_of, with_default_tag

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("image", "asked"),
    [
        ("busybox", "busybox:latest"),
        ("busybox:1.36", "busybox:1.36"),
        ("localhost:5000/app", "localhost:5000/app:latest"),
        ("localhost:5000/app:v1", "localhost:5000/app:v1"),
        ("a/b/c-d_e.f", "a/b/c-d_e.f:latest"),
        (f"busybox@{DIGEST}", f"busybox@{DIGEST}"),
        (f"example.com/x:1@{DIGEST}", f"example.com/x:1@{DIGEST}"),
    ],
)
def test_the_default_tag_is_given_only_where_there_is_none(image: str, asked: str) -> None:
    assert with_default_tag(image) == asked


@pytest.mark.parametrize("image", ["", "/x", "a b", "x:", "x@sha256:short", "x:té", "-x"])
def test_what_is_no_name_is_said_as_kubernetes_says_it(image: str) -> None:
    with pytest.raises(InvalidReference) as fault:
        with_default_tag(image)
    assert str(fault.value) == (
        f'Failed to apply default image tag "{image}": '
        f'couldn\'t parse image name "{image}": invalid reference format'
    )


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("BusyBox:1", "invalid reference format: repository name (library/BusyBox) must be lowercase"),
        ("team/App", "invalid reference format: repository name (team/App) must be lowercase"),
        (
            "reg.example.com/Team/App:1",
            "invalid reference format: repository name (Team/App) must be lowercase",
        ),
        ("a" * 64, f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(image: str, why: str) -> None:
    with pytest.raises(InvalidReference) as fault:
        with_default_tag(image)
    assert str(fault.value).endswith(f": {why}")


def test_a_host_may_have_capitals() -> None:
    assert with_default_tag("Registry/app") == "Registry/app:latest"


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_the_declared_error(image: str) -> None:
    with suppress(InvalidReference):
        assert with_default_tag(with_default_tag(image)).startswith(image)


@pytest.mark.parametrize(
    ("image", "place"),
    [
        ("busybox", Repository("docker.io", "library/busybox")),
        ("team/app:1", Repository("docker.io", "team/app")),
        ("index.docker.io/team/app", Repository("docker.io", "team/app")),
        ("localhost:5000/app", Repository("localhost:5000", "app")),
        ("reg.example.com/a/b:2", Repository("reg.example.com", "a/b")),
    ],
)
def test_where_an_image_is(image: str, place: Repository) -> None:
    assert place_of(image) == place


@pytest.mark.parametrize(
    ("key", "image", "fits"),
    [
        ("https://index.docker.io/v1/", "busybox", True),
        ("docker.io", "busybox", True),
        ("reg.example.com", "reg.example.com/a", True),
        ("https://reg.example.com/v2/", "reg.example.com/a", True),
        ("reg.example.com", "reg.example.com:5000/a", False),
        ("reg.example.com:5000", "reg.example.com:5000/a", True),
        ("*.example.com", "reg.example.com/a", True),
        ("*.example.com", "a.reg.example.com/a", False),
        ("*.*.example.com", "a.reg.example.com/a", True),
        ("reg.example.com/team", "reg.example.com/team/app", True),
        ("reg.example.com/team", "reg.example.com/teams/app", False),
        ("reg.example.com/team", "reg.example.com/other", False),
        ("", "busybox", False),
    ],
)
def test_which_registry_a_pull_secret_is_for(key: str, image: str, fits: bool) -> None:
    assert covers(key, place_of(image)) is fits
