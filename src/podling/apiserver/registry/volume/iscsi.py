"""Faults of an iSCSI volume: its target, and the names it and the initiator go by."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podling.apiserver.registry.field import between, invalid, required
from podling.model.errors import Cause
from podling.model.volume_drivers import ISCSIVolumeSource

MAX_LUN = 255
MAX_INITIATED_NAME = 64

_FORMS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([a-z0-9-.]+)(:([^,;*&$|\s]+))?"),
    "eui": re.compile(r"eui.[a-zA-Z0-9]{16}"),
    "naa": re.compile(r"naa.[a-zA-Z0-9]{32}"),
}


def validate_iscsi(source: ISCSIVolumeSource, path: str) -> Iterator[Cause]:
    if not source.target_portal:
        yield required(f"{path}.targetPortal")
    if not source.iqn:
        yield required(f"{path}.iqn")
    else:
        yield from _validate_name(source.iqn, f"{path}.iqn")
    yield from between(f"{path}.lun", source.lun, 0, MAX_LUN)
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        yield required(f"{path}.secretRef")
    if source.initiator_name is not None:
        yield from _validate_name(source.initiator_name, f"{path}.initiatorname")


def validate_initiated(source: ISCSIVolumeSource, volume: str, path: str) -> Iterator[Cause]:
    """An initiator of one's own makes an interface named after volume and portal; names are short."""
    if source.initiator_name is None:
        return
    if len(f"{volume}:{source.target_portal}") > MAX_INITIATED_NAME:
        why = (
            f"Total length of <volume name>:<iscsi.targetPortal> must be under {MAX_INITIATED_NAME} "
            "characters if iscsi.initiatorName is specified."
        )
        yield invalid(f"{path}.name", volume, why)


def _validate_name(name: str, path: str) -> Iterator[Cause]:
    form = _FORMS.get(name[:3])
    if form is None:
        yield invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not form.fullmatch(name):
        yield invalid(path, name, "must be valid format")
