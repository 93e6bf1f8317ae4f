"""What a machine must have to be one more API server of a cluster, on its way there: sealed in a Secret that
the holder of one bootstrap token may read, and whose key stands in the command that is printed alone.

    keys and certificates ─▶ AES-256-GCM ─▶ Secret `control-plane-ID` ─▶ who has token and key

The Secret, and the right to read it, are owned by that of the token: they go with it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from podling.assemble.shared import Shared, kept
from podling.client.client import Client
from podling.machine.instance import Instance
from podling.machine.start import StartError
from podling.model.rules.bootstrap_tokens import NAMESPACE, PREFIX, secret_of
from podling.model.types.core import Secret
from podling.model.types.meta import ObjectMeta, OwnerReference
from podling.model.types.rbac import GROUP, PolicyRule, Role, RoleBinding, RoleRef, Subject

KEY_BYTES, NONCE_BYTES = 32, 12
FILES = (
    "ca.crt",
    "ca.key",
    "service-accounts.key",
    "service-accounts.pub",
    "front-proxy/ca.crt",
    "front-proxy/ca.key",
)
"""Of `pki`: what others trust, and signs for them. All else each server makes for itself."""
OF_ETCD = ("etcd/ca.crt", "etcd/client.crt", "etcd/client.key")
DATA = "sealed"


class Handed(msgspec.Struct, frozen=True):
    """`cluster` is its uid; `files` are by their names in `pki`."""

    cluster: str
    shared: Shared
    files: Mapping[str, bytes]


def new_key() -> str:
    return secrets.token_hex(KEY_BYTES)


def seal(handed: Handed, key: str, token: str) -> bytes:
    """`token` is the id of the token."""
    nonce = os.urandom(NONCE_BYTES)
    plain = msgspec.json.encode(handed)
    return nonce + AESGCM(bytes.fromhex(key)).encrypt(nonce, plain, token.encode())


def unseal(sealed: bytes, key: str, token: str) -> Handed:
    """Raises StartError."""
    try:
        nonce, hidden = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        plain = AESGCM(bytes.fromhex(key)).decrypt(nonce, hidden, token.encode())
        return msgspec.json.decode(plain, type=Handed)
    except InvalidTag as error:
        raise StartError("--certificate-key is not the one that was printed with this token") from error
    except ValueError as error:
        raise StartError(f"what the cluster hands over cannot be read: {error}") from error


def read(instance: Instance, authority: bytes) -> Handed:
    """What this machine can hand over, which is an API server of the cluster whose `authority` (PEM) is
    known. Raises StartError."""
    of = kept(instance)
    if of is None:
        if not instance.database.exists():
            raise StartError(f"{instance.data_dir} is of no API server: run this where one is")
        raise StartError(
            f"{instance.data_dir} keeps the objects of this cluster, and several API servers share an etcd: "
            "`podling migrate-storage --to etcd` first"
        )
    if instance.running() is None:
        raise StartError(f"no API server runs here ({instance.data_dir}): start it with `podling up`")
    if all(is_here_alone(url) for url in of.servers):
        raise StartError(
            f"other machines do not reach an etcd at {', '.join(of.servers)}: start podling with "
            "--etcd-servers at an address that they reach"
        )
    try:
        files = {name: (instance.pki_dir / name).read_bytes() for name in FILES}
        given = dict(zip(OF_ETCD, (of.ca, of.certificate, of.key), strict=True))
        files |= {name: Path(file).read_bytes() for name, file in given.items() if file}
        cluster = instance.etcd_cluster.read_text()
    except OSError as error:
        raise StartError(f"what another API server needs cannot be read: {error}") from error
    if files["ca.crt"] != authority:
        raise StartError(f"the kubeconfig is of another cluster than {instance.data_dir}")
    return Handed(cluster, of, files)


def is_here_alone(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def name_for(token: str) -> str:
    """Of Secret, Role and RoleBinding; `token` is the id of the token."""
    return f"control-plane-{token}"


async def hand_over(
    client: Client, handed: Handed, token: str, key: str, until: datetime, description: str
) -> None:
    """Make the token, and what its holder may read. Raises ValueError, StatusError."""
    made = await client.create(secret_of(token, until, description, groups=()))
    owner = OwnerReference(api_version="v1", kind="Secret", name=made.metadata.name, uid=made.metadata.uid)
    id_ = made.metadata.name.removeprefix(PREFIX)
    name = name_for(id_)
    meta = ObjectMeta(name=name, namespace=NAMESPACE, owner_references=[owner])
    may = PolicyRule(api_groups=[""], resources=["secrets"], resource_names=[name], verbs=["get"])
    who = Subject(kind="User", name=f"system:bootstrap:{id_}", api_group=GROUP)
    await client.create(Secret(metadata=meta, data={DATA: seal(handed, key, id_)}))
    await client.create(Role(metadata=meta, rules=[may]))
    role = RoleRef(api_group=GROUP, kind="Role", name=name)
    await client.create(RoleBinding(metadata=meta, subjects=[who], role_ref=role))
