"""The store in etcd as an API server opens it: members and certificates of options, values of others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import podling.storage.etcd.etcd_pb2 as pb
from podling.apiserver.kinds.kind import storage_key
from podling.apiserver.protobuf.wire import MAGIC, decode
from podling.apiserver.store.server_leases import PREFIX as MASTER_LEASES
from podling.assemble.etcd_certificates import fault_of, tls_of
from podling.assemble.settle import EtcdOptions
from podling.machine.start import StartError
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.rules.service_endpoints import API_NAMESPACE, API_SERVICE
from podling.model.scheme import RESOURCES
from podling.model.types.meta import KubeObject
from podling.model.types.service import Endpoints
from podling.storage.etcd.connection import Connection, EtcdError, target
from podling.storage.etcd.keys import AGREED
from podling.storage.etcd.store import EtcdStorage, UnreadableError
from podling.storage.etcd.store import open as open_store
from podling.storage.interface import Record, Storage

STATUS = "/etcdserverpb.Maintenance/Status"
OLDEST = (3, 4)
ENDPOINTS = f"/registry/endpoints/{API_NAMESPACE}/{API_SERVICE}"
FORMAT, OURS = "/registry/storage.podling/format", 1
"""Which form podling's values have, if a podling has said so: a later one raises the number once it writes
what this one cannot read. Nobody has yet."""
OLDER_DEFINITION = b'{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1"'
ALIKE = {
    "validation": "schema",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Fields of v1beta1 for all versions of a definition, and those of one version in v1."""


async def connect(options: EtcdOptions) -> Connection:
    """Raises StartError, at once for certificates that no member takes."""
    try:
        if any(target(url)[1] for url in options.servers):
            if fault := await fault_of(options):
                raise StartError(fault)
            return Connection(options.servers, tls_of(options))
        return Connection(options.servers)
    except OSError as error:
        raise StartError(f"what was given for etcd cannot be read: {error}") from error
    except ValueError as error:
        raise StartError(f"--etcd-servers: {error}") from error


async def open_etcd(options: EtcdOptions) -> EtcdStorage:
    """Raises StartError."""
    connection = await connect(options)
    try:
        opened = await open_store(connection, plain)
    except (EtcdError, UnreadableError) as error:
        await connection.close()
        raise StartError(await fault_of(options) or f"--etcd-servers: {error}") from error
    try:
        status = await connection.ask(STATUS, pb.StatusRequest(), pb.StatusResponse)
        if why := version_fault(status.version) or format_fault(await opened.get(FORMAT)):
            raise StartError(f"--etcd-servers: {why}")
    except EtcdError as error:
        await opened.close()
        raise StartError(f"--etcd-servers: {error}") from error
    except StartError:
        await opened.close()
        raise
    return opened


def version_fault(version: str) -> str:
    """Why podling cannot work with this version of etcd; empty if it can."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if len(numbers) == 2 and numbers >= OLDEST:
        return ""
    return f"this is etcd {version or 'of no version'}; podling needs {'.'.join(map(str, OLDEST))} or later"


def format_fault(record: Record | None) -> str:
    """Why podling cannot read what another podling has stored; empty if it can."""
    text = record.value.decode(errors="replace") if record else str(OURS)
    if text.isdigit() and int(text) <= OURS:
        return ""
    return f"a newer podling has stored this, in form {text}; this one knows form {OURS}: nothing was changed"


def cluster_fault(known: str, found: str) -> str:
    """Why an etcd that holds the cluster `found` is not the one that a data directory belongs to, which has
    served the cluster `known`; empty if it may be. Clusters are uids of kube-system."""
    if not known or known == found:
        return ""
    there = f"holds another cluster, {found}," if found else "holds no cluster"
    return f"this etcd {there} and this data directory is of cluster {known}: nothing was changed"


async def port_fault(storage: Storage, address: str, port: int) -> str:
    """Why a server at `address` and `port` cannot be one of those that live; empty if it can. One that is
    there as well under the same address is not looked at: it may be what this one was before."""
    living = {one.key.removeprefix(MASTER_LEASES) for one in (await storage.list(MASTER_LEASES)).records}
    record = await storage.get(ENDPOINTS)
    if not (others := sorted(living - {address})) or record is None:
        return ""
    subsets = json.decode(record.value, Endpoints).subsets
    theirs = next((one.port for subset in subsets for one in subset.ports), port)
    if theirs == port:
        return ""
    return (
        f"the API servers of this cluster ({', '.join(others)}) have port {theirs}, which all share, and "
        f"this one was given --port {port}: nothing was changed"
    )


def plain(key: str, value: bytes) -> bytes:
    """What kube-apiserver wrote, as podling writes it: JSON, of the version that podling stores. Raises
    UnreadableError."""
    is_older = value.startswith(OLDER_DEFINITION)
    if not (value.startswith(MAGIC) or is_older) or key.startswith(AGREED):
        return value
    type_ = next((type_ for prefix, type_ in _types().items() if key.startswith(prefix)), None)
    if type_ is None:
        raise UnreadableError(f"{key} is protobuf, of a kind that podling does not know")
    try:
        data = newer_definition(json.decode(value, dict[str, Any])) if is_older else decode(value, type_)
        obj = json.decode(json.encode({**data, "apiVersion": type_.API_VERSION}), type_)
    except (StatusError, ValueError) as error:
        raise UnreadableError(f"{key} is of a form that podling cannot read: {error}") from error
    return json.with_nulls(json.encode(obj), type_)


def newer_definition(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A CustomResourceDefinition of v1 from one of v1beta1, which kube-apiserver still stores: there, what
    all versions have alike stands once."""
    spec = dict(stored["spec"])
    alike = {ours: spec.pop(theirs) for theirs, ours in ALIKE.items() if theirs in spec}
    for name in ("version", "preserveUnknownFields"):
        spec.pop(name, None)
    versions = [{**alike, **version} for version in spec.get("versions") or ()]
    for version in versions:
        for column in version.get("additionalPrinterColumns") or ():
            column["jsonPath"] = column.pop("JSONPath", None) or column.get("jsonPath", "")
    conversion = dict(spec.get("conversion") or {})
    client, reviews = (
        conversion.pop("webhookClientConfig", None),
        conversion.pop("conversionReviewVersions", None),
    )
    if client is not None:
        conversion["webhook"] = {"clientConfig": client, "conversionReviewVersions": reviews}
    return {**stored, "spec": {**spec, "versions": versions, "conversion": conversion}}


@cache
def _types() -> dict[str, type[KubeObject]]:
    """By the prefix of their keys."""
    return {storage_key(one): one.type for one in RESOURCES if one.stored and not one.view}
