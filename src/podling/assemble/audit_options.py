"""What a command line says of the audit log: Kubernetes' options, in its units."""

from __future__ import annotations

import msgspec


class AuditOptions(msgspec.Struct, frozen=True):
    """`path` is a file, `-` for standard output, `off` for nowhere, and the data directory's `audit.log` when
    empty. A bound of 0 bounds nothing."""

    path: str = ""
    max_age_days: int = 366
    max_backups: int = 100
    max_size_mib: int = 100
