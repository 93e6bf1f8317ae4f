"""What the command line asks for of everything in one process, and what its start has settled."""

from __future__ import annotations

import msgspec

from podling.assemble.audit_options import AuditOptions
from podling.assemble.node_options import NodeOptions
from podling.instance import Instance


class UpOptions(msgspec.Struct, frozen=True):
    """`port` None is the port of the last start, or the default."""

    instance: Instance
    port: int | None = None
    node: NodeOptions = msgspec.field(default_factory=NodeOptions)
    audit: AuditOptions = AuditOptions()


class Settled(msgspec.Struct, frozen=True):
    """`options`, and what they leave open: the port of the API server and the pods' subnet."""

    options: UpOptions
    port: int
    subnet: str
