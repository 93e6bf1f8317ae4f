"""Kubeconfigs as people have them, against a server over TLS; and what is refused, by its field."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization as form
from multidict import MultiMapping

from podling.client import kubeconfig
from podling.client.kubeconfig import KubeconfigError

if TYPE_CHECKING:
    from unit.client.conftest import Doorman


async def ask(file: Path, context: str = "") -> int:
    """The code a request is answered with."""
    transport = kubeconfig.read(file, context).transport()
    try:
        return (await transport.request("GET", "/api", {}, None))[0]
    finally:
        await transport.close()


def encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


@pytest.mark.parametrize("system", ["linux", "darwin"])
async def test_certificates_inline(doorman: Doorman, system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Linux nothing of them comes to the disk."""
    monkeypatch.setattr("podling.client.tls.sys.platform", system)
    if system == "linux":
        monkeypatch.setattr("tempfile.NamedTemporaryFile", None)
    pair = doorman.authority.client("ada", "ada")
    user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    ca = encoded(doorman.authority.ca.certificate)
    inline = {"certificate-authority": None, "certificate-authority-data": ca}
    assert await ask(doorman.kubeconfig(user, **inline)) == 200
    assert doorman.who == [("ada", "")]


async def test_a_file_that_was_replaced_is_read_again(doorman: Doorman) -> None:
    """Its login changes; what cannot be read changes nothing."""
    file = doorman.kubeconfig({"token": "t0"})
    transport = kubeconfig.read(file).transport()
    for user, code in (({"token": "t0"}, "t0"), ({"token": "t1"}, "t1")):
        doorman.kubeconfig(user)
        await transport.request("GET", "/api", {}, None)
        assert doorman.who[-1] == ("", f"Bearer {code}")
    file.write_text("users: [")
    await transport.request("GET", "/api", {}, None)
    assert doorman.who[-1] == ("", "Bearer t1")
    await transport.close()


async def test_paths_start_at_the_file(doorman: Doorman, monkeypatch: pytest.MonkeyPatch) -> None:
    doorman.authority.client("ada", "ada")
    user = {"client-certificate": "pki/ada.crt", "client-key": "pki/ada.key"}
    file = doorman.kubeconfig(user, **{"certificate-authority": "pki/ca.crt"})
    monkeypatch.chdir("/")
    assert await ask(file) == 200
    assert doorman.who == [("ada", "")]


@pytest.mark.parametrize(
    ("user", "shown"),
    [
        ({}, ""),
        ({"token": "t0"}, "Bearer t0"),
        ({"tokenFile": "token"}, "Bearer t1"),
        ({"token": "t0", "tokenFile": "token"}, "Bearer t1"),
        ({"username": "ada", "password": "pä:ss"}, "Basic YWRhOnDDpDpzcw=="),
    ],
)
async def test_who_asks_without_a_certificate(doorman: Doorman, user: dict[str, str], shown: str) -> None:
    (doorman.directory / "token").write_text(" t1\n")
    assert await ask(doorman.kubeconfig(user)) == 200
    assert doorman.who == [("", shown)]


async def test_a_certificate_and_a_token_are_both_shown(doorman: Doorman) -> None:
    doorman.authority.client("ada", "ada")
    user = {"client-certificate": "pki/ada.crt", "client-key": "pki/ada.key", "token": "t0"}
    assert await ask(doorman.kubeconfig(user)) == 200
    assert doorman.who == [("ada", "Bearer t0")]


async def test_acting_as_somebody_else(doorman: Doorman) -> None:
    as_bob = {
        "as": "bob",
        "as-uid": "17",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"example.org/scope": ["a", "b"]},
    }
    assert await ask(doorman.kubeconfig({"token": "t0", **as_bob})) == 200
    headers = doorman.asked[0].headers
    assert isinstance(headers, MultiMapping)
    assert headers["Impersonate-User"] == "bob"
    assert headers["Impersonate-Uid"] == "17"
    assert headers.getall("Impersonate-Group") == ["dev", "ops"]
    assert headers.getall("Impersonate-Extra-example.org%2Fscope") == ["a", "b"]


async def test_compression_is_offered_unless_it_is_disabled(doorman: Doorman) -> None:
    assert await ask(doorman.kubeconfig({})) == 200
    assert await ask(doorman.kubeconfig({}, **{"disable-compression": True})) == 200
    offered = [request.headers.get("Accept-Encoding", "") for request in doorman.asked]
    assert "gzip" in offered[0] and offered[1] == ""


async def test_a_server_of_an_unknown_authority_is_not_believed(doorman: Doorman) -> None:
    """Without an authority in the file the machine's are trusted, which know nothing of this server."""
    with pytest.raises(OSError, match="certificate verify failed"):
        await ask(doorman.kubeconfig({}, **{"certificate-authority": None}))
    assert doorman.asked == []


async def test_any_server_is_believed_where_the_file_says_so(doorman: Doorman) -> None:
    careless = {"certificate-authority": None, "insecure-skip-tls-verify": True}
    assert await ask(doorman.kubeconfig({}, **careless)) == 200


async def test_a_server_certificate_is_trusted_by_itself(doorman: Doorman) -> None:
    """As in Go: what is in the file is trusted, an authority or not."""
    assert await ask(doorman.kubeconfig({}, **{"certificate-authority": "pki/server.crt"})) == 200


@pytest.mark.parametrize("name", ["api.example", "127.0.0.1"])
async def test_the_certificate_is_for_tls_server_name(doorman: Doorman, name: str) -> None:
    assert await ask(doorman.kubeconfig({}, **{"tls-server-name": name})) == 200


async def test_a_certificate_for_another_name_is_not_believed(doorman: Doorman) -> None:
    with pytest.raises(OSError, match=r"not valid for 'other.example'"):
        await ask(doorman.kubeconfig({}, **{"tls-server-name": "other.example"}))


async def test_one_of_several_contexts(doorman: Doorman) -> None:
    document = {
        "clusters": [
            {"name": "here", "cluster": {"server": f"https://127.0.0.1:{doorman.port}", **CA}},
            {"name": "away", "cluster": {"server": "ftp://nowhere", "made-up": 1}},
        ],
        "users": [{"name": name, "user": {"token": name}} for name in ("ada", "bob")],
        "contexts": [
            {"name": "first", "context": {"cluster": "here", "user": "ada"}},
            {"name": "second", "context": {"cluster": "here", "user": "bob", "namespace": "dev"}},
            {"name": "third", "context": {"cluster": "away", "user": "gone"}},
        ],
        "current-context": "first",
    }
    file = doorman.directory / "config"
    file.write_text(yaml.safe_dump(document))
    for context in ("", "second"):
        assert await ask(file, context) == 200
    assert doorman.who == [("", "Bearer ada"), ("", "Bearer bob")]
    assert kubeconfig.read(file).namespace == "default"
    assert kubeconfig.read(file, "second").namespace == "dev"


CA = {"certificate-authority": "pki/ca.crt"}
GARBAGE = base64.b64encode(b"garbage").decode()
OIDC: dict[str, Any] = {"name": "oidc"}
CERTIFICATE = {"client-certificate": "pki/ada.crt", "client-key": "pki/ada.key"}
EXEC = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "true",
    "interactiveMode": "Never",
}


@pytest.mark.parametrize(
    ("field", "user", "why"),
    [
        ("tokn", {"tokn": "t0"}, "unknown field `tokn`"),
        ("token", {"token": 17}, "Expected `str`, got `int` - at `$.token`"),
        ("token", {"token": "two\nlines"}, "control characters"),
        ("tokenFile", {"tokenFile": "missing"}, "No such file"),
        ("tokenFile", {"tokenFile": "empty"}, "is empty"),
        ("username", {"username": "ada", "token": "t0"}, "token is given, too"),
        ("username", {"username": "ada", "tokenFile": "config"}, "tokenFile is given, too"),
        ("username", {"password": "secret"}, "missing beside password"),
        ("auth-provider", {"auth-provider": {"name": "gcp"}}, "not supported"),
        ("idp-issuer-url", {"auth-provider": {"name": "oidc"}}, "missing"),
        ("client-id", {"auth-provider": OIDC | {"config": {"idp-issuer-url": "x"}}}, "missing"),
        (
            "idp-issuer-url",
            {"auth-provider": OIDC | {"config": {"idp-issuer-url": "x", "client-id": "x"}}},
            "must be a URL",
        ),
        ("auth-provider", {"exec": EXEC, "auth-provider": OIDC}, "exec is given, too"),
        ("as-groups", {"as-groups": ["dev"]}, "missing beside it is as"),
        ("as-groups", {"as": "bob", "as-groups": ["a\r\nb: c"]}, "control characters"),
        ("client-key", {"client-certificate": "pki/ada.crt"}, "missing beside client-certificate"),
        ("client-certificate", {"client-key": "pki/ada.key"}, "missing beside client-key"),
        ("client-certificate", {**CERTIFICATE, "client-certificate": "missing"}, "No such file"),
        ("client-certificate", {**CERTIFICATE, "client-certificate-data": GARBAGE}, "only one can be"),
        ("client-key", {**CERTIFICATE, "client-key-data": GARBAGE}, "only one can be"),
        ("client-key", {**CERTIFICATE, "client-key": "pki/ca.key"}, "KEY_VALUES_MISMATCH"),
        ("client-key", {**CERTIFICATE, "client-key": "encrypted.key"}, "the key is encrypted"),
        ("client-key-data", {"client-key-data": "%%"}, "base64"),
        ("client-certificate", {"client-certificate-data": GARBAGE, "client-key-data": GARBAGE}, "[SSL]"),
        ("token", {"exec": EXEC, "token": "t0"}, "exec is given, too"),
        ("client-certificate", {"exec": EXEC, **CERTIFICATE}, "exec is given, too"),
        ("exec.command", {"exec": {**EXEC, "command": ""}}, "missing"),
        ("exec.command", {"exec": {**EXEC, "command": "no-such-helper"}}, "no-such-helper is not a program"),
        ("exec.command", {"exec": {**EXEC, "command": "./empty", "installHint": "Get it"}}, "\nGet it"),
        ("exec.apiVersion", {"exec": {**EXEC, "apiVersion": "x/v1alpha1"}}, '"x/v1alpha1" is not supported'),
        ("exec.interactiveMode", {"exec": {**EXEC, "interactiveMode": "Ever"}}, "must be one of Never"),
        ("exec.interactiveMode", {"exec": {**EXEC, "interactiveMode": None}}, "must be one of Never"),
        ("exec.env", {"exec": {**EXEC, "env": [{"name": "", "value": "x"}]}}, "no name"),
        ("$.exec.env[0].name", {"exec": {**EXEC, "env": [{"name": 1}]}}, "Expected `str`"),
        ("shell", {"exec": {**EXEC, "shell": True}}, "unknown field `shell`"),
    ],
)
def test_a_user_that_cannot_be_is_refused_by_field(
    lonely: Doorman, field: str, user: dict[str, Any], why: str
) -> None:
    refused = refusal(lonely.kubeconfig(user))
    assert 'users "me": ' in refused and field in refused and why in refused


@pytest.mark.parametrize(
    ("field", "cluster", "why"),
    [
        ("server", {"server": None}, "'' is not supported"),
        ("server", {"server": "ftp://127.0.0.1"}, "https:// or http://"),
        ("server", {"server": "https://ada:secret@127.0.0.1"}, "username and password"),
        ("server", {"server": "https://[::1"}, "is not a URL"),
        ("proxy-url", {"proxy-url": "socks5h://127.0.0.1:1080"}, "or socks5://"),
        ("certificate-authority", {"certificate-authority": "missing"}, "No such file"),
        ("certificate-authority", {"certificate-authority": "empty"}, "it is empty"),
        ("certificate-authority", {"certificate-authority": "config"}, "no start line"),
        ("certificate-authority", {"certificate-authority-data": GARBAGE}, "only one can be"),
        ("insecure-skip-tls-verify", {"insecure-skip-tls-verify": True}, "only one can be"),
        ("insecure-skip-tls-verify", {"insecure-skip-tls-verify": "yes"}, "Expected `bool`"),
        ("made-up", {"made-up": 1}, "unknown field `made-up`"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_by_field(
    lonely: Doorman, field: str, cluster: dict[str, Any], why: str
) -> None:
    refused = refusal(lonely.kubeconfig({}, **cluster))
    assert 'clusters "here": ' in refused and field in refused and why in refused


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"current-context": None}, "current-context: missing"),
        ({"current-context": "gone"}, 'contexts: no entry is named "gone"'),
        ({"users": None}, 'users: no entry is named "me"'),
        ({"clusters": [{"name": "here"}] * 2}, 'clusters: two entries are named "here"'),
        ({"clusters": 17}, "clusters: not a list"),
        ({"contexts": [{"name": "this", "context": []}]}, 'contexts "this": Expected `object`'),
    ],
)
def test_a_file_that_does_not_hold_together_is_refused(
    lonely: Doorman, change: dict[str, Any], why: str
) -> None:
    file = lonely.kubeconfig({})
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **change}))
    assert why in refusal(file)


def refusal(file: Path) -> str:
    with pytest.raises(KubeconfigError) as refused:
        kubeconfig.read(file)
    assert str(refused.value).startswith(f"{file}: ")
    return str(refused.value)


@pytest.fixture
def lonely(absent_doorman: Doorman, tmp_path: Path) -> Doorman:
    """A server that nobody will come to, with files to be wrong about."""
    made = absent_doorman
    made.authority.client("ada", "ada")
    (tmp_path / "empty").touch()
    (tmp_path / "encrypted.key").write_bytes(encrypted((tmp_path / "pki/ada.key").read_bytes()))
    return made


def encrypted(key: bytes) -> bytes:
    way = form.BestAvailableEncryption(b"secret")
    loaded = form.load_pem_private_key(key, None)
    return loaded.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, way)


async def test_several_files_are_one(doorman: Doorman, tmp_path: Path) -> None:
    """As with kubectl: the first that names something counts, its paths start at its own directory, and a
    file that is not there is none."""
    away = tmp_path / "away"
    away.mkdir()
    (away / "token").write_text("of away")
    users = [{"name": "ada", "user": {"tokenFile": "token"}}]
    contexts = [{"name": "here", "context": {"cluster": "here", "user": "ada", "namespace": "dev"}}]
    first = away / "config"
    first.write_text(yaml.safe_dump({"users": users, "contexts": contexts}))
    second = doorman.kubeconfig({"token": "of the second"})
    access = kubeconfig.read_merged([tmp_path / "missing", first, second], "here")
    made = access.transport()
    try:
        await made.request("GET", "/api", {}, None)
    finally:
        await made.close()
    assert (access.namespace, doorman.who) == ("dev", [("", "Bearer of away")])


def test_no_file_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"a, .*b: no such file"):
        kubeconfig.read_merged([tmp_path / "a", tmp_path / "b"])
