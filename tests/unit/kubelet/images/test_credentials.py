"""Pull secrets: the fitting credentials, most specific first; broken secrets count for nothing."""

import base64
import json

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.images.reference import credentials_for


def secret(auths: object) -> dict[str, bytes]:
    return {".dockerconfigjson": json.dumps({"auths": auths}).encode()}


def test_the_most_specific_entry_is_tried_first_and_each_only_once() -> None:
    basic = base64.b64encode(b"joe:se:cret").decode()
    first = secret({"reg.io": {"username": "any", "password": "p"}, "reg.io/team": {"auth": basic}})
    second = secret({"https://reg.io": {"username": "any", "password": "p"}})
    assert credentials_for("reg.io/team/app", [first, second]) == [
        pb.AuthConfig(username="joe", password="se:cret"),
        pb.AuthConfig(username="any", password="p"),
    ]
    assert credentials_for("busybox", [first, second]) == []


def test_tokens_are_passed_on_and_the_older_format_is_read() -> None:
    old = {".dockercfg": json.dumps({"reg.io": {"identitytoken": "i", "registrytoken": "r"}}).encode()}
    assert credentials_for("reg.io/app", [old]) == [pb.AuthConfig(identity_token="i", registry_token="r")]


@pytest.mark.parametrize("data", [b"", b"no", b"[]", b'{"auths": 3}', b'{"auths": {"reg.io": "x"}}', b"{}"])
def test_a_broken_secret_gives_nothing(data: bytes) -> None:
    assert credentials_for("reg.io/app", [{".dockerconfigjson": data}, {}]) == []


def test_broken_base64_gives_an_anonymous_entry() -> None:
    assert credentials_for("reg.io/app", [secret({"reg.io": {"auth": "%%"}})]) == [pb.AuthConfig()]
