"""R-SYS-8: what pods get of their service account, and what is refused, as in Kubernetes: also of mirror
pods, of secrets that hold an account's token, and of tokens that are asked for. Of a private key that cannot
be read the words are those of Go's decoders: no such key is compared."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from peer.named_differences import unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

BASE = "/api/v1/namespaces/{ns}"
PODS, ACCOUNTS, SECRETS = (f"{BASE}/{plural}" for plural in ("pods", "serviceaccounts", "secrets"))
DRY = "?dryRun=All"
PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
MERGE, STRATEGIC = {"Content_Type": MERGE_PATCH}, {"Content_Type": STRATEGIC_PATCH}
ENFORCED = "kubernetes.io/enforce-mountable-secrets"
MIRROR = "kubernetes.io/config.mirror"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
TOKEN = "kubernetes.io/service-account-token"
CONTAINER: dict[str, Any] = {"name": "c", "image": "i:1"}


def named(name: str, fields: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, **(fields or {})}


def pod(spec: Any = None, name: str = "p", **metadata: Any) -> dict[str, Any]:
    return named(name, {"spec": {"containers": [CONTAINER], **(spec or {})}}, **metadata)


def tried(spec: Any, what: str = "", **metadata: Any) -> Ask:
    return Ask("POST", f"{PODS}{DRY}", pod(spec, **metadata), what=what or str(spec))


def mounting(*mounts: dict[str, Any], name: str = "c", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "i:1", "volumeMounts": list(mounts), **fields}


ACCOUNT_FIELDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "never": {"automountServiceAccountToken": False},
    "always": {"automountServiceAccountToken": True},
    "pulls": {"imagePullSecrets": [{"name": "one"}, {"name": "two"}, {"name": "one"}]},
    "pulls-nothing": {"imagePullSecrets": [{}]},
    "holds": {"secrets": [{"name": "s"}]},
}
PULLED: tuple[list[dict[str, str]] | None, ...] = (
    None, [], [{"name": "own"}], [{}], [{"name": "own"}, {"name": "own"}],
)  # fmt: skip
OF_ACCOUNTS: list[dict[str, Any]] = [
    {},
    {"serviceAccountName": ""},
    {"serviceAccount": ""},
    {"serviceAccountName": "plain"},
    {"serviceAccount": "plain"},
    {"serviceAccountName": "plain", "serviceAccount": "never"},
    {"serviceAccountName": "", "serviceAccount": "never"},
    {"serviceAccountName": "never", "serviceAccount": ""},
    {"serviceAccountName": "nobody"},
    {"serviceAccount": "nobody"},
    {"serviceAccountName": "plain", "serviceAccount": "nobody"},
    {"serviceAccountName": "nobody", "serviceAccount": "plain"},
    *({"serviceAccountName": name} for name in ("Bad_", "a/b", "..", "%", "x" * 254, "a.b")),
    *(
        {"serviceAccountName": name, "automountServiceAccountToken": said}
        for name in ("plain", "never", "always")
        for said in (None, True, False)
    ),
    *(
        {"serviceAccountName": name, "imagePullSecrets": own, "automountServiceAccountToken": False}
        for name in ("plain", "pulls", "pulls-nothing")
        for own in PULLED
    ),
]


def mounts() -> Iterator[dict[str, Any]]:
    """What is mounted at the place of the token, or near it, by whom."""
    at_place = {"name": "v", "mountPath": PLACE}
    volume = {"volumes": [{"name": "v", "emptyDir": {}}]}
    for mount in (
        at_place,
        {**at_place, "mountPath": f"{PLACE}/"},
        {**at_place, "mountPath": f"{PLACE}/token"},
        {**at_place, "mountPath": "/var/run/secrets"},
        {**at_place, "mountPath": "/run/secrets/kubernetes.io/serviceaccount"},
        {**at_place, "subPath": "a"},
        {**at_place, "readOnly": True},
        {"name": "missing", "mountPath": PLACE},
    ):
        yield {**volume, "containers": [mounting(mount)]}
    yield {**volume, "containers": [mounting(at_place), mounting(name="d")]}
    yield {**volume, "containers": [mounting(at_place)], "initContainers": [mounting(name="i")]}
    yield {**volume, "containers": [mounting()], "initContainers": [mounting(at_place, name="i")]}
    always = {"restartPolicy": "Always"}
    yield {"containers": [mounting()], "initContainers": [mounting(name="i", **always), mounting(name="j")]}
    for name in (
        "kube-api-access-",
        "kube-api-access",
        "kube-api-access-mine",
        "kube-api-accessory",
        "default-token-abcde",
        "x-kube-api-access-mine",
    ):
        own = {"name": name, "mountPath": "/elsewhere"}
        named_so: dict[str, Any] = {"volumes": [{"name": name, "emptyDir": {}}]}
        yield {**named_so, "containers": [mounting()]}
        yield {**named_so, "containers": [mounting(own)], "initContainers": [mounting(name="i")]}
        yield {**named_so, "containers": [mounting({**own, "mountPath": PLACE})]}
    pair = [{"name": f"kube-api-access-{letter}", "emptyDir": {}} for letter in "ba"]
    yield {"volumes": pair, "containers": [mounting()]}
    yield {"volumes": [*volume["volumes"], *pair], "containers": [mounting(at_place), mounting(name="d")]}
    yield {"volumes": pair, "containers": [mounting()], "automountServiceAccountToken": False}
    yield {"os": {"name": "windows"}, "containers": [mounting()]}
    yield {"os": {"name": "windows"}, "containers": [mounting({**at_place, "mountPath": "C:\\a"})], **volume}
    yield {"os": {"name": "linux"}, "containers": [mounting()]}
    yield {"hostNetwork": True, "nodeName": "n", "containers": [mounting()]}
    yield {"containers": []}
    yield {"containers": [mounting(), mounting()]}


def of_accounts() -> list[Ask]:
    update: list[dict[str, Any]] = [
        {"serviceAccountName": "never"},
        {"serviceAccount": "never"},
        {"serviceAccountName": None},
        {"serviceAccount": None},
        {"serviceAccountName": None, "serviceAccount": None},
        {"serviceAccountName": "nobody", "serviceAccount": "nobody"},
        {"automountServiceAccountToken": True},
        {"automountServiceAccountToken": None},
        {"imagePullSecrets": None},
        {"imagePullSecrets": [{"name": "other"}]},
        {"activeDeadlineSeconds": 5},
        {"volumes": None},
    ]
    return [
        *(Ask("POST", ACCOUNTS, named(name, fields)) for name, fields in ACCOUNT_FIELDS.items()),
        *(tried(one) for one in OF_ACCOUNTS),
        *(tried({"serviceAccountName": "plain", **one}) for one in mounts()),
        tried({}, namespace="{ns}"),
        tried({}, generateName="x"),
        Ask(
            "POST", PODS, pod({"serviceAccountName": "pulls", "automountServiceAccountToken": False}, "kept")
        ),
        *(Ask("PATCH", f"{PODS}/kept{DRY}", {"spec": one}, MERGE, str(one)) for one in update),
        *(Ask("PATCH", f"{PODS}/kept{DRY}", {"spec": one}, STRATEGIC, str(one)) for one in update),
        Ask("PUT", f"{PODS}/kept{DRY}", pod({"serviceAccountName": "pulls"}, "kept")),
        Ask("PUT", f"{PODS}/kept{DRY}", pod({"automountServiceAccountToken": False}, "kept")),
        Ask(
            "PUT",
            f"{PODS}/kept{DRY}",
            pod({"serviceAccount": "pulls", "automountServiceAccountToken": False}, "kept"),
        ),
        Ask(
            "PATCH",
            f"{PODS}/applied{DRY}&fieldManager=m",
            {"apiVersion": "v1", "kind": "Pod", **pod({"serviceAccountName": "nobody"}, "applied")},
            {"Content_Type": APPLY},
        ),
        Ask(
            "PATCH",
            f"{PODS}/applied{DRY}&fieldManager=m",
            {"apiVersion": "v1", "kind": "Pod", **pod({"serviceAccount": "pulls"}, "applied")},
            {"Content_Type": APPLY},
        ),
        # An account that goes and comes.
        Ask("DELETE", f"{ACCOUNTS}/pulls"),
        Ask("PATCH", f"{PODS}/kept{DRY}", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        Ask("POST", f"{PODS}{DRY}", pod({"serviceAccountName": "pulls"}), until=403),
        Ask("PATCH", f"{ACCOUNTS}/plain", {"automountServiceAccountToken": False}, MERGE),
        Ask("PATCH", f"{ACCOUNTS}/default", {"imagePullSecrets": [{"name": "of-all"}]}, MERGE),
        Ask("POST", f"{PODS}{DRY}", pod(), until="of-all"),
        tried({"imagePullSecrets": [{"name": "own"}]}),
        Ask("DELETE", f"{ACCOUNTS}/default"),
        Ask("POST", f"{PODS}{DRY}", pod(), until=403),
    ]


def mirrors() -> list[Ask]:
    bare = {"nodeName": "n"}
    variable = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    of_map = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}}
    sources: dict[str, Any] = {
        "secret": {"secret": {"secretName": "s"}},
        "map": {"configMap": {"name": "s"}},
        "claim": {"persistentVolumeClaim": {"claimName": "s"}},
        "ephemeral": {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    }
                }
            }
        },
        "token": {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        "projected secret": {"projected": {"sources": [{"secret": {"name": "s"}}]}},
        "projected map": {"projected": {"sources": [{"configMap": {"name": "s"}}]}},
        "certificates": {"projected": {"sources": [{"clusterTrustBundle": {"name": "b", "path": "t"}}]}},
        "fields": {
            "projected": {
                "sources": [
                    {"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]}}
                ]
            }
        },
        "directory": {"hostPath": {"path": "/a"}},
        "empty": {"emptyDir": {}},
        "disk": {
            "csi": {"driver": "d.test", "nodePublishSecretRef": {"name": "s"}},
        },
        "no secret": {"csi": {"driver": "d.test"}},
        "flex": {"flexVolume": {"driver": "d/t", "secretRef": {"name": "s"}}},
        "iscsi": {
            "iscsi": {"targetPortal": "a", "iqn": "iqn.2001-04.com.example:a", "lun": 1,
                      "secretRef": {"name": "s"}},
        },
        "rbd": {"rbd": {"monitors": ["a"], "image": "b", "secretRef": {"name": "s"}}},
        "cephfs": {"cephfs": {"monitors": ["a"], "secretRef": {"name": "s"}}},
        "azure": {"azureFile": {"secretName": "s", "shareName": "t"}},
        "scale": {"scaleIO": {"gateway": "a", "system": "b", "volumeName": "c", "secretRef": {"name": "s"}}},
        "storage": {"storageos": {"volumeName": "c", "secretRef": {"name": "s"}}},
        "image": {"image": {"reference": "i"}},
    }  # fmt: skip
    claimed: dict[str, dict[str, Any]] = {
        "no node": {"nodeName": ""},
        "bad name": {"hostname": "A_"},
        "ephemeral container": {"ephemeralContainers": [{**CONTAINER, "name": "e"}]},
        "gate": {"schedulingGates": [{"name": "a"}]},
        "bad claim": {"resourceClaims": [{"name": "A_"}]},
        "token": {"volumes": [{"name": "v", **sources["token"]}]},
        "bad volume": {"volumes": [{"name": "A_", "emptyDir": {}}]},
        "odd volume": {"volumes": [{"name": "v", "emptyDir": {"medium": "x"}}]},
    }
    own: list[tuple[str, dict[str, Any]]] = [
        ("bare", bare),
        ("no node", {}),
        ("account", {**bare, "serviceAccountName": "default"}),
        ("older account", {**bare, "serviceAccount": "default"}),
        ("missing account", {**bare, "serviceAccountName": "nobody"}),
        ("automount", {**bare, "automountServiceAccountToken": True}),
        ("pull secrets", {**bare, "imagePullSecrets": [{"name": "s"}]}),
        ("no pull secret", {**bare, "imagePullSecrets": [{}]}),
        *((what, {**bare, "volumes": [{"name": "v", **source}]}) for what, source in sources.items()),
        ("variable", {**bare, "containers": [{**CONTAINER, "env": [variable]}]}),
        ("variable of a map", {**bare, "containers": [{**CONTAINER, "env": [of_map]}]}),
        (
            "all of a secret",
            {**bare, "containers": [{**CONTAINER, "envFrom": [{"secretRef": {"name": "s"}}]}]},
        ),
        (
            "all of a map",
            {**bare, "containers": [{**CONTAINER, "envFrom": [{"configMapRef": {"name": "s"}}]}]},
        ),
        ("variable of init", {**bare, "initContainers": [{**CONTAINER, "name": "i", "env": [variable]}]}),
        ("ephemeral container", {**bare, "ephemeralContainers": [{**CONTAINER, "name": "e"}]}),
        ("claims", {**bare, "resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}),
        *(
            (
                f"claims and {what}",
                {**bare, "resourceClaims": [{"name": "a", "resourceClaimName": "b"}], **more},
            )
            for what, more in claimed.items()
        ),
        ("several", {"serviceAccountName": "a", "imagePullSecrets": [{"name": "s"}]}),
    ]
    marked = {"annotations": {MIRROR: "x"}}
    kept = pod(bare, "kept", **marked)
    annotations: list[Any] = [{MIRROR: "y"}, {MIRROR: None}, {MIRROR: ""}, {"other": "z"}, None]
    return [
        *(tried(spec, what, **marked) for what, spec in own),
        *(tried(bare, value or "empty", annotations={MIRROR: value}) for value in ("", "false", "mirror")),
        tried(
            bare,
            "owner",
            **marked,
            ownerReferences=[
                {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
            ],
        ),
        tried(bare, "file", annotations={"kubernetes.io/config.source": "file"}),
        tried({}, "hash", annotations={"kubernetes.io/config.hash": "h"}),
        Ask(
            "POST",
            f"/apis/apps/v1/namespaces/{{ns}}/replicasets{DRY}",
            named(
                "r",
                {
                    "spec": {
                        "selector": {"matchLabels": {"a": "b"}},
                        "template": pod(
                            {**bare, "resourceClaims": [{"name": "a", "resourceClaimName": "b"}]},
                            labels={"a": "b"},
                            annotations={MIRROR: "x"},
                        ),
                    }
                },
            ),
        ),
        Ask("POST", PODS, kept),
        *(
            Ask("PATCH", f"{PODS}/kept{DRY}", {"metadata": {"annotations": one}}, MERGE, str(one))
            for one in annotations
        ),
        Ask("PATCH", f"{PODS}/kept{DRY}", {"spec": {"activeDeadlineSeconds": 5}}, MERGE),
        Ask("PATCH", f"{PODS}/kept{DRY}", {"spec": {"serviceAccountName": "default"}}, MERGE),
        Ask("PUT", f"{PODS}/kept{DRY}", pod(bare, "kept")),
        Ask("PUT", f"{PODS}/kept{DRY}", kept),
        Ask("PUT", f"{PODS}/kept/status{DRY}", {**pod(bare, "kept"), "status": {"phase": "Running"}}),
        Ask(
            "PATCH",
            f"{PODS}/kept/ephemeralcontainers{DRY}",
            {"spec": {"ephemeralContainers": [{**CONTAINER, "name": "e"}]}},
            STRATEGIC,
        ),
        Ask(
            "PATCH",
            f"{PODS}/kept/resize{DRY}",
            {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}},
            STRATEGIC,
        ),
        Ask("POST", f"{PODS}/kept/binding{DRY}", {"metadata": {"name": "kept"}, "target": {"name": "n"}}),
        Ask("POST", f"{PODS}/kept/eviction{DRY}", {"metadata": {"name": "kept"}}),
        Ask("POST", f"{ACCOUNTS}/default/token", bound("Pod", "kept")),
        Ask("POST", PODS, pod({"nodeName": "n"}, "plain")),
        Ask("PATCH", f"{PODS}/plain{DRY}", {"metadata": marked}, MERGE),
        Ask("POST", PODS, pod({"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}, "claims")),
        Ask("PATCH", f"{PODS}/claims{DRY}", {"metadata": marked}, MERGE),
        Ask("PATCH", f"{PODS}/claims/status{DRY}", {"metadata": marked}, MERGE),
        Ask("PATCH", f"{PODS}/plain{DRY}", {"metadata": {"annotations": {MIRROR: ""}}}, MERGE),
        *(
            Ask("DELETE", f"{PODS}/{name}{options}")
            for name in ("kept", "plain")
            for options in (DRY, "?gracePeriodSeconds=0")
        ),
    ]


def bound(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, **more}}}


def enforced() -> list[Ask]:
    """Accounts whose pods may use only the secrets that they name."""

    def of(value: str, name: str, **fields: Any) -> Ask:
        return Ask("POST", ACCOUNTS, named(name, fields, annotations={ENFORCED: value}))

    def using(secret: str) -> Iterator[dict[str, Any]]:
        variable = {"name": "A", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}
        every = {"secretRef": {"name": secret}}
        yield {"volumes": [{"name": "v", "secret": {"secretName": secret}}]}
        yield {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": secret}}]}}]}
        yield {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": secret}}}]}
        yield {"containers": [{**CONTAINER, "env": [variable]}]}
        yield {"containers": [{**CONTAINER, "envFrom": [every]}]}
        yield {"initContainers": [{**CONTAINER, "name": "i", "env": [{"name": "B", "value": "v"}, variable]}]}
        yield {"initContainers": [{**CONTAINER, "name": "i", "envFrom": [every]}]}
        yield {"imagePullSecrets": [{"name": secret}]}
        yield {"imagePullSecrets": [{"name": "p"}, {"name": secret}]}

    values = ("true", "false", "1", "T", "yes", "")
    secrets = [{"name": "s"}, {"name": "t", "kind": "Pod", "namespace": "elsewhere", "uid": "u"}]
    pulled = [{"name": "p"}]
    ephemeral = {**CONTAINER, "name": "e"}
    by = [
        {**ephemeral, "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}]}
        for name in ("s", "other")
    ]
    by += [{**ephemeral, "envFrom": [{"secretRef": {"name": name}}]} for name in ("t", "p")]
    changes: list[Any] = [
        {ENFORCED: "true"},
        {ENFORCED: "false"},
        {ENFORCED: None},
        {"other": "x"},
        None,
    ]
    return [
        *(
            of(value, f"a{number}", secrets=secrets, imagePullSecrets=pulled)
            for number, value in enumerate(values)
        ),
        of("true", "nothing"),
        *(tried({"serviceAccountName": f"a{number}", **next(using("x"))}) for number in range(len(values))),
        *(tried({"serviceAccountName": "a0", **one}) for name in ("s", "t", "p", "x") for one in using(name)),
        *(tried({"serviceAccountName": "nothing", **one}) for one in using("s")),
        *(
            tried({"serviceAccountName": "a0", **one}, annotations={MIRROR: "x"}, what="mirror")
            for one in using("s")
        ),
        Ask("POST", PODS, pod({"serviceAccountName": "a0", "automountServiceAccountToken": False}, "kept")),
        *(
            Ask(
                "PATCH",
                f"{PODS}/kept/ephemeralcontainers{DRY}",
                {"spec": {"ephemeralContainers": [one]}},
                STRATEGIC,
            )
            for one in by
        ),
        *(Ask("PATCH", f"{ACCOUNTS}/a0{DRY}", {"metadata": {"annotations": one}}, MERGE) for one in changes),
        *(
            Ask("PATCH", f"{ACCOUNTS}/default{DRY}", {"metadata": {"annotations": one}}, MERGE)
            for one in changes
        ),
    ]


def accounts() -> list[Ask]:
    """Accounts themselves, and secrets that hold a token of one."""
    fields: list[dict[str, Any]] = [
        {},
        {"secrets": []},
        {"secrets": [{}]},
        {"secrets": [{"name": "a"}, {"name": "a"}]},
        {"secrets": [{"name": "Bad_"}]},
        {
            "secrets": [
                {"kind": "Secret", "apiVersion": "v1", "name": "a", "namespace": "b", "fieldPath": "c"}
            ]
        },
        {"secrets": [{"fieldPath": "c"}]},
        {"imagePullSecrets": []},
        {"imagePullSecrets": [{}]},
        {"imagePullSecrets": [{"name": ""}, {"name": "Bad_"}]},
        {"automountServiceAccountToken": True},
        {"automountServiceAccountToken": "true"},
        {"unknown": 1},
        {"secrets": "x"},
    ]
    changes: list[dict[str, Any]] = [
        *fields,
        {"secrets": None},
        {"imagePullSecrets": None},
        {"metadata": {"name": "other"}},
        {"metadata": {"generation": 4}},
    ]
    return [
        *(Ask("POST", f"{ACCOUNTS}{DRY}", named("n", one)) for one in fields),
        Ask("POST", f"{ACCOUNTS}{DRY}", named("default")),
        Ask("POST", f"{ACCOUNTS}{DRY}", named("Bad_")),
        Ask(
            "POST",
            ACCOUNTS,
            named("n", {"secrets": [{"name": "a"}, {"name": "b"}], "imagePullSecrets": [{"name": "c"}]}),
        ),
        *(
            Ask("PATCH", f"{ACCOUNTS}/n{DRY}", one, headers, str(one))
            for one in changes
            for headers in (MERGE, STRATEGIC)
        ),
        *(
            Ask("PATCH", f"{ACCOUNTS}/n{DRY}", one, STRATEGIC, str(one))
            for one in (
                {"secrets": [{"name": "a", "$patch": "delete"}]},
                {"imagePullSecrets": [{"name": "c", "$patch": "delete"}]},
                {"imagePullSecrets": [{"name": "d"}]},
                {"secrets": [{"$patch": "replace"}]},
            )
        ),
        Ask(
            "PATCH",
            f"{ACCOUNTS}/n{DRY}",
            [{"op": "add", "path": "/secrets/-", "value": {"name": "z", "kind": "X"}}],
            {"Content_Type": JSON_PATCH},
        ),
        *(Ask("PUT", f"{ACCOUNTS}/n{DRY}", named("n", one)) for one in fields),
        *(
            Ask(
                "PATCH",
                f"{ACCOUNTS}/{name}{DRY}&fieldManager=m",
                {"apiVersion": "v1", "kind": "ServiceAccount", **named(name, one)},
                {"Content_Type": APPLY},
            )
            for one in fields
            for name in ("n", "new")
        ),
        Ask("DELETE", f"{ACCOUNTS}/n", {"preconditions": {"uid": "x"}}),
        Ask("DELETE", f"{ACCOUNTS}/n?propagationPolicy=Foreground"),
        Ask("POST", f"{ACCOUNTS}/n/token", {}),
        Ask("PATCH", f"{ACCOUNTS}/n", {"metadata": {"finalizers": None}}, MERGE),
        Ask("DELETE", ACCOUNTS),
        Ask("GET", ACCOUNTS),
    ]


def key_pairs() -> Iterator[dict[str, str]]:
    """Certificates and private keys that belong together and that do not."""
    keys: dict[str, Any] = {
        "rsa": rsa.generate_private_key(65537, 2048),
        "curve": ec.generate_private_key(ec.SECP256R1()),
        "other curve": ec.generate_private_key(ec.SECP384R1()),
        "edwards": ed25519.Ed25519PrivateKey.generate(),
        "goldilocks": ed448.Ed448PrivateKey.generate(),
        "exchange": x25519.X25519PrivateKey.generate(),
    }
    signer = keys["curve"]
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
    certificates: dict[str, str] = {}
    for what, key in keys.items():
        builder = x509.CertificateBuilder(
            name, name, key.public_key(), 1, datetime(2026, 1, 1), datetime(2036, 1, 1)
        )
        certificates[what] = builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    forms = {"modern": PrivateFormat.PKCS8, "older": PrivateFormat.TraditionalOpenSSL}
    written: dict[str, str] = {}
    for what, key in keys.items():
        if what == "goldilocks":
            continue
        for form in forms if what in ("rsa", "curve") else ("modern",):
            written[f"{what} {form}"] = key.private_bytes(Encoding.PEM, forms[form], NoEncryption()).decode()
    empty = "-----BEGIN {0}-----\n-----END {0}-----\n".format
    one, its = certificates["curve"], written["curve modern"]
    for certificate in certificates.values():
        for private in written.values():
            yield {"tls.crt": certificate, "tls.key": private}
    for public in (
        "", "x", empty("CERTIFICATE"), empty("X"), empty("X") + empty("Y"), its, its + its, f"x\n{one}",
        empty("X") + one, one + empty("CERTIFICATE"), empty("CERTIFICATE") + one, one[:100],
        one.replace("BEGIN CERT", "BEGIN TRUSTED CERT").replace("END CERT", "END TRUSTED CERT"),
    ):  # fmt: skip
        yield {"tls.crt": public, "tls.key": its}
    for private in (
        "", "x", empty("XPRIVATE KEY"), empty("X"),
        empty("X") + empty("CERTIFICATE"), one, one + one, one + its, empty("X") + its, its + empty("X"),
        its.replace("PRIVATE", "PUBLIC"), its.replace("PRIVATE", "RSA PRIVATE"),
    ):  # fmt: skip
        yield {"tls.crt": one, "tls.key": private}


def token_secrets() -> list[Ask]:
    data = {"token": "dA==", "ca.crt": "Yw==", "namespace": "bg=="}
    bodies: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {"type": TOKEN}),
        *(
            ({"annotations": {ACCOUNT_NAME: name}}, {"type": TOKEN})
            for name in ("default", "nobody", "", "Bad_")
        ),
        ({"annotations": {ACCOUNT_UID: "u"}}, {"type": TOKEN}),
        ({"annotations": {ACCOUNT_NAME: "default", ACCOUNT_UID: "u"}}, {"type": TOKEN, "data": data}),
        ({"annotations": {ACCOUNT_NAME: "default"}}, {"type": TOKEN, "immutable": True}),
        ({"annotations": {ACCOUNT_NAME: "default"}}, {"type": "Opaque", "data": data}),
        ({"annotations": {ACCOUNT_NAME: "default"}}, {}),
        ({"annotations": {ACCOUNT_NAME: "default"}}, {"type": ""}),
        ({"annotations": {ACCOUNT_NAME: "default"}}, {"type": TOKEN, "stringData": {"token": "x"}}),
        ({"labels": {"kubernetes.io/legacy-token-last-used": "2026-01-02"}}, {"type": TOKEN}),
        ({}, {"type": "bootstrap.kubernetes.io/token"}),
        *(
            ({}, {"type": "kubernetes.io/tls", "stringData": keys})
            for keys in ({}, {"tls.crt": "x"}, *key_pairs())
        ),
    ]
    changes: list[dict[str, Any]] = [
        {"metadata": {"annotations": {ACCOUNT_NAME: "other"}}},
        {"metadata": {"annotations": {ACCOUNT_NAME: ""}}},
        {"metadata": {"annotations": {ACCOUNT_NAME: None}}},
        {"metadata": {"annotations": {ACCOUNT_UID: "u"}}},
        {"metadata": {"annotations": None}},
        {"type": "Opaque"},
        {"type": None},
        {"data": data},
        {"data": None, "immutable": True},
        {"stringData": {"token": "y"}},
        {"data": {"Bad key": "eA=="}},
    ]
    return [
        *(Ask("POST", f"{SECRETS}{DRY}", named("n", fields, **meta)) for meta, fields in bodies),
        Ask("POST", SECRETS, named("n", {"type": TOKEN}, annotations={ACCOUNT_NAME: "nobody"})),
        *(Ask("PATCH", f"{SECRETS}/n{DRY}", one, MERGE, str(one)) for one in changes),
        *(Ask("PUT", f"{SECRETS}/n{DRY}", named("n", fields, **meta)) for meta, fields in bodies),
        Ask("GET", f"{SECRETS}?fieldSelector=type%3D{TOKEN.replace('/', '%2F')}"),
        Ask("GET", f"{SECRETS}?fieldSelector=type!%3D{TOKEN.replace('/', '%2F')}"),
        Ask("DELETE", f"{SECRETS}?fieldSelector=type%3D{TOKEN.replace('/', '%2F')}"),
        Ask("GET", SECRETS),
    ]


OTHER_UID = "11111111-1111-1111-1111-111111111111"


def tokens() -> list[Ask]:
    requests: list[Any] = [
        {},
        {"spec": {}},
        {"spec": None},
        *(
            {"spec": {"expirationSeconds": seconds}}
            for seconds in (0, 1, 599, 600, 3600, 3607, 1 << 32, (1 << 32) + 1, -600, "600", 600.5, None)
        ),
        *({"spec": {"audiences": audiences}} for audiences in (None, [""], ["a"], ["a", "a"], "a", [1])),
        *(
            bound(kind, name, **more)
            for kind in ("Pod", "Secret", "Node")
            for name in ("kept", "none", "", "Bad_", "a/b", "..")
            for more in ({}, {"uid": OTHER_UID})
        ),
        bound("Pod", "kept", uid="$2.metadata.uid"),
        bound("Secret", "kept", uid="$1.metadata.uid"),
        bound("Node", "kept", uid="$2.metadata.uid"),
        bound("Pod", "kept", apiVersion=""),
        bound("Pod", "kept", apiVersion="v2"),
        bound("Pod", "kept", apiVersion="/v1"),
        bound("Pod", "kept", apiVersion="a/b/c"),
        bound("pod", "kept"),
        bound("", "kept"),
        bound("ServiceAccount", "default"),
        bound("Deployment", "kept", apiVersion="apps/v1"),
        bound("Pod", "others"),
        bound("Pod", "going"),
        bound("Pod", "unscheduled"),
        {"metadata": {"name": "other"}},
        {"metadata": {"name": "default"}},
        {"metadata": {"namespace": "elsewhere"}},
        {"metadata": {"namespace": "{ns}"}},
        {"metadata": {"generateName": "x"}},
        {"metadata": {"labels": {"a b": "c"}}},
        {"metadata": {"resourceVersion": "1", "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z"}},
        {"metadata": {"uid": OTHER_UID}},
        {"metadata": {"uid": "$0.metadata.uid"}},
        {"metadata": {"uid": "u"}, "spec": {"expirationSeconds": 1}},
        {"metadata": {"uid": "u"}, **bound("Pod", "none")},
        {"metadata": {"uid": "u", "name": "other"}},
        bound("Pod", "kept", apiVersion="/"),
        bound("X", "kept", apiVersion="a/b/c"),
        bound("X", "kept", apiVersion="/v1"),
        bound("X", "kept", apiVersion="/"),
        bound("Pod", "kept", apiVersion="apps/"),
        bound("Pod", "%"),
        {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"},
        {"kind": "TokenRequest", "apiVersion": "v1"},
        {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1"},
        {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1beta1"},
        {"unknown": 1},
        {"status": {"token": "x", "expirationTimestamp": "2026-01-02T03:04:05Z"}},
        {"spec": {"expirationSeconds": 1, "audiences": [], "boundObjectRef": {"kind": "X"}}},
        b"",
        b"null",
        b"[]",
    ]
    bare = {"automountServiceAccountToken": False}
    token = f"{ACCOUNTS}/default/token"
    held = {"finalizers": ["a.test/b"]}
    return [
        Ask("POST", "/api/v1/nodes", named("kept")),
        Ask("POST", SECRETS, named("kept")),
        Ask("POST", PODS, pod({**bare, "nodeName": "kept"}, "kept")),
        Ask("POST", ACCOUNTS, named("other")),
        Ask("POST", PODS, pod({**bare, "serviceAccountName": "other"}, "others")),
        Ask("POST", PODS, pod(bare, "unscheduled")),
        Ask("POST", PODS, pod(bare, "going", **held)),
        Ask("DELETE", f"{PODS}/going?gracePeriodSeconds=0"),
        *(Ask("POST", token, one) for one in requests),
        *(Ask("POST", f"{token}{DRY}", one) for one in ({}, bound("Pod", "none"))),
        *(Ask("POST", f"{ACCOUNTS}/{name}/token", {}) for name in ("none", "Bad_", "%25", "x" * 254)),
        Ask("POST", f"{token}?fieldValidation=Strict", {"unknown": 1}),
        Ask("POST", f"{token}?dryRun=x", {}),
        *(Ask(method, token, {}) for method in ("GET", "PUT", "PATCH", "DELETE")),
        Ask("POST", ACCOUNTS, named("held", **held)),
        Ask("DELETE", f"{ACCOUNTS}/held"),
        Ask("POST", f"{ACCOUNTS}/held/token", {}),
        Ask("PATCH", f"{ACCOUNTS}/held", {"metadata": {"finalizers": None}}, MERGE),
        Ask("POST", f"{ACCOUNTS}/held/token", {}),
        Ask("DELETE", "/api/v1/nodes/kept"),
        Ask("PATCH", f"{PODS}/going", {"metadata": {"finalizers": None}}, MERGE),
        Ask("POST", token, bound("Pod", "going")),
        Ask("POST", token, bound("Pod", "kept")),
    ]


SEQUENCES = [
    Compared("accounts of pods", of_accounts(), apart=True),
    Compared("mirror pods", mirrors(), apart=True),
    Compared("secrets that may be used", enforced(), apart=True),
    Compared("accounts", accounts(), apart=True),
    Compared("secrets with a token", token_secrets(), apart=True),
    Compared("tokens", tokens(), apart=True),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_accounts_of_pods(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = f"accounts-{SEQUENCES.index(sequence)}"
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
