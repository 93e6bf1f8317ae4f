"""What a machine whose cluster is kept in etcd keeps of its last start: where that etcd is, and what all API
servers of the cluster have alike.

`podling up` begins with it again. Other machines become API servers with it (`server_secrets.py`).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from podling.assemble.settle import EtcdOptions
from podling.machine.instance import Instance
from podling.machine.start import StartError


class Shared(msgspec.Struct, frozen=True):
    """`ca`, `certificate` and `key` are files, of which there may be none. `node` and `address` are this
    machine's: its Node's name, and where its API server is reached."""

    servers: tuple[str, ...]
    port: int
    service_range: str
    cluster_cidr: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""
    node: str = ""
    address: str = ""

    @property
    def etcd(self) -> EtcdOptions:
        ca, certificate, key = (
            Path(name) if name else None for name in (self.ca, self.certificate, self.key)
        )
        return EtcdOptions(self.servers, ca, certificate, key)


def shared(
    etcd: EtcdOptions,
    port: int,
    service_range: str,
    cluster_cidr: str = "",
    node: str = "",
    address: str = "",
) -> Shared:
    def name(file: Path | None) -> str:
        return str(file.absolute()) if file else ""

    files = name(etcd.ca), name(etcd.certificate), name(etcd.key)
    return Shared(etcd.servers, port, service_range, cluster_cidr, *files, node, address)


def keep(instance: Instance, of: Shared) -> None:
    """Only for root: it says how to reach what has all secrets."""
    # A start reads before cryptography is imported, and containerd starts meanwhile.
    from podling.machine.pki import write_whole

    write_whole(instance.shared_file, msgspec.json.encode(of), 0o600, durable=True)


def kept(instance: Instance) -> Shared | None:
    """None if objects are in the data directory. Raises StartError."""
    try:
        return msgspec.json.decode(instance.shared_file.read_bytes(), type=Shared)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StartError(
            f"{instance.shared_file} cannot be read ({error}): remove it, and say again with --etcd-servers "
            "where objects are"
        ) from error
