"""The settings of a kubelet from the flags of a command line and a file of Kubernetes' own form.

    apiVersion: kubelet.config.k8s.io/v1beta1
    kind: KubeletConfiguration
    evictionSoft: {nodefs.available: 15%}
    evictionSoftGracePeriod: {nodefs.available: 1m30s}

Flags and fields are named as Kubernetes' kubelet names them; a flag wins over the file. Whatever is wrong is
refused before anything starts, by both its names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from podling.kubelet.config import CGROUP_MOUNT
from podling.kubelet.host.cgroups import hierarchies
from podling.kubelet.options.table import ALONE, API_VERSION, DEFAULTS, KIND, LIMITS, OPTIONS, Option
from podling.process.mounts import MOUNTINFO

_BY_FLAG = {option.flag: option for option in (*OPTIONS, *ALONE) if option.flag}
_BY_FIELD = {option.field: option for option in LIMITS if option.field}


class SettingError(ValueError):
    """A setting that cannot be; names it."""


def chosen(file: Path | None, flags: Mapping[str, object], mounts: Path = MOUNTINFO) -> Mapping[str, Any]:
    """What differs from the defaults of `KubeletConfig`, by its names; `mounts` are this machine's. Raises
    SettingError."""
    given = dict(_of_file(file)) if file else {}
    given.update((_BY_FLAG[flag], text) for flag, text in flags.items())
    values: dict[str, Any] = {}
    for option, value in given.items():
        try:
            values[option.attribute] = option.read(value)
        except ValueError as error:
            raise SettingError(f"{option.both}: {error}") from error
    # What settings say of each other, and of the machine.
    high = values.get("image_gc_high", DEFAULTS["image_gc_high"])
    low = values.get("image_gc_low", DEFAULTS["image_gc_low"])
    if low >= high:
        names = [_BY_FIELD[f"imageGC{which}ThresholdPercent"].both for which in ("Low", "High")]
        raise SettingError(f"{names[0]}: {low} must be less than {names[1]} {high}")
    for signal in values.get("eviction_soft", ()):
        if signal not in values.get("eviction_soft_grace", ()):
            needed = f"grace period must be specified for the soft eviction threshold {signal}"
            raise SettingError(f"{_BY_FIELD['evictionSoftGracePeriod'].both}: {needed}")
    # The kernel can kill all of a container at once only where memory is cgroup v2's.
    if values.get("single_process_oom_kill") is False and not any(
        h.version == 2 and "memory" in h.controllers for h in hierarchies(CGROUP_MOUNT, mounts)
    ):
        raise SettingError("singleProcessOOMKill must not be explicitly set to false when using cgroup v1")
    return values


def _of_file(file: Path) -> Iterator[tuple[Option, object]]:
    try:
        told = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingError(f"--config: {file} cannot be read: {error}") from error
    if not isinstance(told, dict) or (told.pop("apiVersion", ""), told.pop("kind", "")) != (
        API_VERSION,
        KIND,
    ):
        raise SettingError(f"--config: {file} is not a {KIND} of {API_VERSION}")
    for field, value in told.items():
        if field not in _BY_FIELD:
            raise SettingError(
                f"--config: {field} cannot be set in {file}; these can: {', '.join(_BY_FIELD)}"
            )
        yield _BY_FIELD[field], value
