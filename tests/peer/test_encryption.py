"""Encryption at rest: what Kubernetes has sealed podling opens, and what podling has sealed Kubernetes; both
rotate and rewrite alike, and refuse the same configurations in the same words."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import msgspec
import yaml

import podling.storage.kms.kms_pb2 as pb
from kms_plugin import KmsPlugin
from peer import control_plane
from peer.agreed import differences, told_at_start
from peer.control_plane import ETCD_URL
from peer.server import Answer, Server
from podling.apiserver.rules.configuration_file import ConfigurationError
from podling.apiserver.rules.encryption import (
    providers_of,
    read_configuration,
)
from podling.machine.pki import Authority
from podling.storage.ciphers import AesCbc, AesGcm, SecretBox
from podling.storage.kms.envelope import Kms
from podling.storage.kms.plugin import GrpcPlugin
from podling.storage.sealing import PLAIN, SEALED, Key, Sealing

SECRETS = "/api/v1/namespaces/default/secrets"
STORED = "/registry/secrets/"
SECRET = bytes(range(32))
GCM = Key(SEALED + b"aesgcm:v1:one:", AesGcm(SECRET))
CBC = Key(SEALED + b"aescbc:v1:two:", AesCbc(SECRET))
BOX = Key(SEALED + b"secretbox:v1:three:", SecretBox(SECRET))
SEALING = Sealing({STORED: (GCM, CBC, BOX, *PLAIN)})
KEY = {"name": "one", "secret": base64.b64encode(SECRET).decode()}
AESGCM = {"aesgcm": {"keys": [KEY]}}
AESCBC = {"aescbc": {"keys": [{**KEY, "name": "two"}]}}
BOXED = {"secretbox": {"keys": [{**KEY, "name": "three"}]}}
IDENTITY: dict[str, Any] = {"identity": {}}
PLAIN_SECRET = msgspec.json.encode(
    {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"namespace": "default", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "data": {"a": "aHVzaA=="},
    }
)


def configuration(*entries: tuple[list[str], list[Any]], **said: Any) -> dict[str, Any]:
    return {
        "kind": "EncryptionConfiguration",
        "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": [{"resources": resources, "providers": providers} for resources, providers in entries],
        **said,
    }


def of_secrets(*providers: Any) -> dict[str, Any]:
    return configuration((["secrets"], list(providers)))


def of_keys(*keys: dict[str, str], way: str = "aesgcm") -> dict[str, Any]:
    return of_secrets({way: {"keys": list(keys)}})


def of_resources(*entries: str) -> dict[str, Any]:
    return configuration(*((entry.split(), [AESGCM]) for entry in entries))


def kms(**said: Any) -> dict[str, Any]:
    usual = {"apiVersion": "v2", "name": "a", "endpoint": "unix:///nowhere.sock", "timeout": "1s"}
    return {"kms": {**usual, **said}}


def of_kms(**said: Any) -> dict[str, Any]:
    return of_secrets(kms(**said))


REFUSED = {
    "nothing": configuration(),
    "no resources": configuration(([], [AESGCM])),
    "no providers": of_secrets(),
    "an empty provider": of_secrets({}),
    "a provider of null": of_secrets({"identity": None}),
    "no keys": of_keys(),
    "no keys for cbc": of_keys(way="aescbc"),
    "no name": of_keys({"secret": KEY["secret"]}),
    "no secret": of_keys(KEY, {"name": "a"}),
    "no base64": of_keys({"name": "a", "secret": "%%"}),
    "bad padding": of_keys({"name": "a", "secret": "AAAAAAAAAAAAAAAAAAAAAA"}),
    "a letter outside": of_keys({"name": "a", "secret": "AAAAAAAAAAAAAAAAAAAAA\u00e4=="}),
    "a short key": of_keys({"name": "a", "secret": "AAAAAAAAAA=="}, way="aescbc"),
    "capitals": of_resources("Secrets"),
    "a star": of_resources("*"),
    "twice": of_resources("secrets secrets"),
    "a wildcard twice": of_resources("*. *."),
    "all twice": of_resources("*.* *.*"),
    "overlapping": of_resources("secrets *."),
    "overlapping in a group": of_resources("deployments.apps *.apps"),
    "overlapping all": of_resources("secrets *.*"),
    "both": of_resources("*. *. secrets"),
    "events": of_resources("events.events.k8s.io"),
    "extensions": of_resources("ingresses.extensions"),
    "across groups": of_resources("secrets.*"),
    "no resource of the API": of_resources("serviceipallocations"),
    "several faults": configuration((["Secrets", "*"], [{}, {"aesgcm": {"keys": []}}]), ([], [])),
    "masked by its group": of_resources("*.", "secrets"),
    "masked by all": of_resources("*.*", "deployments.apps"),
    "a wildcard masked": of_resources("*.*", "*.apps"),
    "all masked": of_resources("*.*", "*.*"),
    "another kind": {**of_secrets(AESGCM), "kind": "X"},
    "another version": {**of_secrets(AESGCM), "apiVersion": "v1"},
    "unknown fields": configuration((["secrets"], [AESGCM]), foo=1),
    "an unknown provider": of_secrets({"rot13": {}}),
    "an unknown field of a key": of_keys({**KEY, "x": "y"}),
    "no keys for secretbox": of_keys(way="secretbox"),
    "a short key for secretbox": of_keys({**KEY, "secret": "AAAAAAAAAAAAAAAAAAAAAA=="}, way="secretbox"),
    "no secretbox": of_secrets({"secretbox": None}),
    "an empty kms": of_secrets({"kms": {}}),
    "no name of a kms": of_kms(name=""),
    "a colon in a name": of_kms(name="a:b"),
    "no endpoint": of_kms(endpoint=""),
    "an endpoint of the web": of_kms(endpoint="http://x"),
    "a bad endpoint": of_kms(endpoint="unix:///x\x7f%zz"),
    "an endpoint that is a path": of_kms(endpoint="/tmp/x"),
    "no time": of_kms(timeout="0s"),
    "less than no time": of_kms(timeout="-1s"),
    "no such time": of_kms(timeout="x"),
    "a time that is a number": of_kms(timeout=3),
    "kms v1": of_kms(apiVersion="v1"),
    "kms v1 by default": of_kms(apiVersion=""),
    "kms v3": of_kms(apiVersion="v3"),
    "a cache": of_kms(cachesize=10),
    "a cache of nothing": of_kms(cachesize=0),
    "kms v1 with a cache of nothing": of_kms(apiVersion="v1", cachesize=0),
    "kms v1 without a cache": of_kms(apiVersion="v1", cachesize=-2),
    "an unknown field of a kms": of_kms(foo=1),
    "a kms twice": of_secrets(kms(), kms()),
    "a kms twice for two": configuration((["secrets"], [kms()]), (["pods"], [kms()])),
    "a kms and more": of_secrets({**kms(), **IDENTITY}),
    "several faults of a kms": of_kms(
        apiVersion="v9", name="a:b", endpoint="http://", timeout="-1s", cachesize=3
    ),
}
_WHERE = re.compile(
    "error while (?:parsing file|building transformers): "
    '(?:error decoding encryption provider configuration file "[^"]*": )?'
)


def test_what_no_server_is_started_with(kubernetes_programs: Path, tmp_path: Path) -> None:
    Authority(tmp_path, datetime.now(UTC)).client("service-accounts", "service-accounts")

    def ask(name: str) -> str:
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(REFUSED[name]))
        said = told_at_start(kubernetes_programs, tmp_path, encryption_provider_config=file)
        whole: str = msgspec.json.decode(said.partition("\n")[0])
        return _WHERE.sub("", whole).partition(" in scheme ")[0]

    ours = {name: _told_by_podling(name) for name in REFUSED}
    assert not differences("encryption", kubernetes_programs, REFUSED, ours, ask)


def _told_by_podling(name: str) -> str:
    try:
        providers_of(read_configuration(msgspec.json.encode(REFUSED[name])))
    except ConfigurationError as error:
        return str(error)
    return ""


class Kept(NamedTuple):
    """A server with its etcd."""

    server: Server
    etcd: str

    def stored(self, name: str) -> bytes:
        said = self._ask("range", key=f"{STORED}default/{name}".encode())
        return base64.b64decode(said["kvs"][0]["value"])

    def store(self, name: str, value: bytes) -> None:
        self._ask("put", key=f"{STORED}default/{name}".encode(), value=value)

    def _ask(self, verb: str, **said: bytes) -> Any:
        with urlopen(Request(f"{self.etcd}/v3/kv/{verb}", msgspec.json.encode(said))) as answer:
            return msgspec.json.decode(answer.read())


@contextmanager
def kubernetes_with(programs: Path, directory: Path, *providers: Any) -> Iterator[Kept]:
    with control_plane.kubernetes(programs, directory, _flag(directory, *providers)) as server:
        yield Kept(server, (directory / ETCD_URL).read_text())


def _flag(directory: Path, *providers: Any) -> str:
    file = directory / "encryption.yaml"
    file.write_text(yaml.safe_dump(of_secrets(*providers)))
    return f"--encryption-provider-config={file}"


def _create(server: Server, name: str) -> Answer:
    body = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name}, "data": {"a": "aHVzaA=="}}
    return server.ask("POST", SECRETS, body)


def _rewritten(server: Server, name: str) -> bool:
    """Whether replacing it by itself writes it."""
    found = server.ask("GET", f"{SECRETS}/{name}").body
    answer = server.ask("PUT", f"{SECRETS}/{name}", found)
    assert answer.code == 200
    return bool(answer.body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"])


def test_each_opens_what_the_other_has_sealed(kubernetes_programs: Path, tmp_path: Path) -> None:
    with kubernetes_with(kubernetes_programs, tmp_path, AESGCM, AESCBC, BOXED, IDENTITY) as kept:
        assert _create(kept.server, "theirs").code == 201
        value, mark = SEALING.open(f"{STORED}default/theirs", kept.stored("theirs"))
        assert b"hush" in value
        assert not SEALING.is_stale(STORED, mark)
        for name, first in (("gcm", GCM), ("cbc", CBC), ("box", BOX), ("plain", PLAIN[0])):
            named = PLAIN_SECRET.replace(b'"metadata":{', b'"metadata":{"name":"%b",' % name.encode())
            kept.store(name, Sealing({STORED: (first,)}).seal(f"{STORED}default/{name}", named).stored)
            assert kept.server.ask("GET", f"{SECRETS}/{name}").body["data"] == {"a": "aHVzaA=="}
        kept.store("moved", kept.stored("gcm"))
        assert kept.server.ask("GET", f"{SECRETS}/moved").code == 500


ROTATED = [IDENTITY], [AESGCM, IDENTITY], [AESCBC, AESGCM], [BOXED, AESCBC], [IDENTITY, BOXED]


def test_what_is_stale_is_rewritten_alike(kubernetes_programs: Path, tmp_path: Path) -> None:
    told: list[list[bool]] = []
    for name in ("theirs", "ours"):
        directory = tmp_path / name
        directory.mkdir()
        told.append([])
        for providers in (
            [IDENTITY],
            [AESGCM, IDENTITY],
            [AESCBC, AESGCM],
            [BOXED, AESCBC],
            [IDENTITY, BOXED],
        ):
            flag = _flag(directory, *providers)
            running = (
                control_plane.kubernetes(kubernetes_programs, directory, flag)
                if name == "theirs"
                else control_plane.podling(directory, flag)
            )
            with running as server:
                if not told[-1]:
                    assert _create(server, "a").code == 201
                told[-1] += [_rewritten(server, "a"), _rewritten(server, "a")]
    theirs, ours = told
    assert ours == theirs == [False, False, *[True, False] * 4]


def noted(name: str, value: bytes) -> Any:
    return pb.EncryptResponse(ciphertext=b"x", key_id="one", annotations={name: value})


LIES: dict[str, dict[str, Any]] = {
    "it is not well": {"healthz": "sick"},
    "another version": {"version": "v1"},
    "several": {"version": "v1", "healthz": "", "key_id": ""},
    "a beta": {"version": "v2beta1"},
    "no key": {"key_id": ""},
    "a long name of a key": {"key_id": "x" * 1025},
    "nothing encrypted": {"answers": {"Encrypt": pb.EncryptResponse(key_id="one")}},
    "no key of what was encrypted": {"answers": {"Encrypt": pb.EncryptResponse(ciphertext=b"x")}},
    "another key": {"answers": {"Encrypt": pb.EncryptResponse(ciphertext=b"x", key_id="two")}},
    "much encrypted": {"answers": {"Encrypt": pb.EncryptResponse(ciphertext=b"x" * 1025, key_id="one")}},
    "a note of no domain": {"answers": {"Encrypt": noted("a", b"1")}},
    "a note of a bad domain": {"answers": {"Encrypt": noted("A_.b", b"1")}},
    "long notes": {"answers": {"Encrypt": noted("a.b", b"1" * 40_000)}},
    "no Status": {"refuses": {"Status"}},
    "no Encrypt": {"refuses": {"Encrypt"}},
}
UID = re.compile('uid="[^"]*"')
FRESH = re.compile(r"failed to perform status section of the healthz check for KMS Provider p\d+, error: ")
"""Not said of what was found in the last three seconds."""
LIVE = "/livez"


def test_plugins_that_lie_are_told_of_alike(kubernetes_programs: Path, tmp_path: Path) -> None:
    """Each is one of as many providers."""
    told: list[str] = []
    with ExitStack() as serving:
        providers = [
            kms(
                name=f"p{index}",
                endpoint=serving.enter_context(KmsPlugin(**lie).serving(tmp_path / f"{index}")),
            )
            for index, lie in enumerate(LIES.values())
        ]
        for server in _both(kubernetes_programs, tmp_path, *providers, IDENTITY):
            well, ready = (
                FRESH.sub("", UID.sub("", server.ask("GET", f"/{check}/kms-providers").body))
                for check in ("healthz", "readyz")
            )
            told += [well]
            assert ready == well
            assert "kms-providers" not in server.ask("GET", "/livez?verbose").body
    theirs, ours = (one.split("kms-provider-") for one in told)
    assert ours == theirs
    assert len(ours) == len(LIES), "all but the beta"


def test_a_plugin_that_is_down_keeps_from_writing_alone(kubernetes_programs: Path, tmp_path: Path) -> None:
    told: list[list[Any]] = []
    down = kms(endpoint=f"unix://{tmp_path}/nobody.sock", timeout="100ms")
    for server in _both(kubernetes_programs, tmp_path, down, IDENTITY):
        refused = _create(server, "a")
        dry = server.ask("POST", f"{SECRETS}?dryRun=All", {"metadata": {"name": "a"}})
        # What was found is told again for three seconds, in fewer words than at first.
        server.ask("GET", "/healthz/kms-providers")
        said = server.ask("GET", "/healthz/kms-providers").body
        told.append([refused.code, refused.body, dry.code, said.partition(" desc = ")[0]])
    theirs, ours = told
    assert ours == theirs
    assert theirs[0] == 500


def test_each_opens_what_the_other_has_sealed_with_a_plugin(
    kubernetes_programs: Path, tmp_path: Path
) -> None:
    plugin = KmsPlugin()
    with plugin.serving(tmp_path / "kms.sock") as endpoint:
        seal = Kms("a", GrpcPlugin(endpoint, 10))
        seal.look()
        ours = Sealing({STORED: (Key(SEALED + b"kms:v2:a:", seal),)})
        with kubernetes_with(kubernetes_programs, tmp_path, kms(endpoint=endpoint)) as kept:
            assert _create(kept.server, "theirs").code == 201
            assert b"hush" in ours.open(f"{STORED}default/theirs", kept.stored("theirs")).value
            named = PLAIN_SECRET.replace(b'"metadata":{', b'"metadata":{"name":"ours",')
            kept.store("ours", ours.seal(f"{STORED}default/ours", named).stored)
            assert kept.server.ask("GET", f"{SECRETS}/ours").body["data"] == {"a": "aHVzaA=="}
            kept.store("moved", kept.stored("ours"))
            assert kept.server.ask("GET", f"{SECRETS}/moved").code == 500
        assert plugin.count("Encrypt") == 2, "one seed for each"
        seal.plugin.close()


def _both(programs: Path, directory: Path, *providers: Any) -> Iterator[Server]:
    """Kubernetes, then podling, with these providers for secrets; each lives until the next is asked for."""
    for name in ("theirs", "ours"):
        place = directory / name
        place.mkdir()
        flag = _flag(place, *providers)
        running = (
            control_plane.kubernetes(programs, place, flag, ready=LIVE)
            if name == "theirs"
            else control_plane.podling(place, flag, ready=LIVE)
        )
        with running as server:
            yield server
