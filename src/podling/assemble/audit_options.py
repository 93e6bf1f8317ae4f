"""The options of the audit log: kube-apiserver's, in its units."""

from __future__ import annotations

import msgspec


class AuditOptions(msgspec.Struct, frozen=True):
    """`path` is a file, `-` for standard output, `off` for no log, and `audit.log` of the data directory when
    empty. 0 for any limit means none."""

    path: str = ""
    max_age_days: int = 366
    max_backups: int = 100
    max_size_mib: int = 100
