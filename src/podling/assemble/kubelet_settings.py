"""Limits of a node that a user may set: by flags, or by a file of Kubernetes' own form.

    apiVersion: kubelet.config.k8s.io/v1beta1
    kind: KubeletConfiguration
    evictionSoft: {nodefs.available: 15%}
    evictionSoftGracePeriod: {nodefs.available: 1m30s}

Flags and fields are named as Kubernetes' kubelet names them; a flag wins over the file. Whatever is wrong is
refused before anything starts, by both its names.

The values of a kubelet's settings, as they are written on a command line or in a file. Pure.

Every reader is given text, or what YAML makes of a value, and raises ValueError with what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from msgspec.structs import fields

from podling.kubelet.config import KubeletConfig
from podling.kubelet.eviction.thresholds import known_signal, parse_amount
from podling.kubelet.host.cgroups import hierarchies
from podling.model.quantity import Quantity

_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:ms|s|m|h))+|0")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def whole_number(least: int, most: int | None = None) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, bool) or not re.fullmatch(r"-?\d+", str(value)):
            raise ValueError(f"{str(value)!r} is not a whole number")
        number = int(str(value))
        if most is not None and not least <= number <= most:
            raise ValueError(f"{number} must be between {least} and {most}, inclusive")
        if number < least:
            raise ValueError(f"{number} must be at least {least}")
        return number

    return read


def process_limit(value: object) -> int | None:
    """Nothing above 0 is no limit."""
    number = whole_number(-1)(value)
    return number if number > 0 else None


def truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{str(value)!r} is neither true nor false")
    return value


def duration(value: object) -> timedelta:
    """As Go writes it: `90s`, `1m30s`."""
    if not _DURATION.fullmatch(str(value)):
        raise ValueError(f"{str(value)!r} is not a duration, such as 1m30s")
    return timedelta(seconds=sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(str(value))))


def some_time(value: object) -> timedelta:
    found = duration(value)
    if not found:
        raise ValueError(f"{str(value)!r} must be a positive duration")
    return found


def size(value: object) -> int:
    """Bytes."""
    try:
        found = Quantity(str(value)).value()
    except ValueError as error:
        raise ValueError(f"{str(value)!r} is not a size, such as 10Mi") from error
    if found <= 0:
        raise ValueError(f"{str(value)!r} must be more than nothing")
    return found


def amounts(value: object) -> Mapping[str, str]:
    """By signal, `SIGNAL<AMOUNT,...` on a command line."""
    return _amounts(value, "<")


def reclaimed(value: object) -> Mapping[str, str]:
    """By signal, `SIGNAL=AMOUNT,...` on a command line."""
    return _amounts(value, "=")


def _amounts(value: object, sign: str) -> Mapping[str, str]:
    found = _by_signal(value, sign, "AMOUNT")
    for text in found.values():
        parse_amount(text)
    return found


def grace_periods(value: object) -> Mapping[str, timedelta]:
    """By signal, `SIGNAL=DURATION,...` on a command line."""
    return {signal: some_time(text) for signal, text in _by_signal(value, "=", "DURATION").items()}


def _by_signal(value: object, sign: str, what: str) -> Mapping[str, str]:
    if isinstance(value, Mapping):
        pairs = [(str(signal), str(text)) for signal, text in value.items()]
    elif isinstance(value, str):
        parts = [part.partition(sign) for part in value.split(",") if part]
        if any(not separator or not text for _, separator, text in parts):
            raise ValueError(f"{value!r} is not SIGNAL{sign}{what},...")
        pairs = [(signal.strip(), text.strip()) for signal, _, text in parts]
    else:
        raise ValueError(f"{str(value)!r} does not map signals to values")
    return {known_signal(signal): text for signal, text in pairs}


CGROUPS, MOUNTS = Path("/sys/fs/cgroup"), Path("/proc/self/mountinfo")
API_VERSION, KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"


class SettingError(ValueError):
    """A setting that cannot be; names it."""


class Setting(NamedTuple):
    """Kubernetes has no `field` of the file for some, and no `flag` for others, which are "" then; `name` is
    that of `KubeletConfig`."""

    flag: str
    field: str
    name: str
    read: Callable[[object], Any]

    @property
    def both(self) -> str:
        return f"{self.field} ({self.flag})" if self.field and self.flag else self.field or self.flag


SETTINGS = (
    Setting("--max-pods", "maxPods", "max_pods", whole_number(1)),
    Setting("--pod-max-pids", "podPidsLimit", "pod_pids_limit", process_limit),
    Setting("", "singleProcessOOMKill", "single_process_oom_kill", truth),
    Setting("--max-parallel-image-pulls", "maxParallelImagePulls", "parallel_pulls", whole_number(1)),
    Setting("--image-pull-progress-deadline", "", "pull_deadline", some_time),
    Setting(
        "--image-gc-high-threshold", "imageGCHighThresholdPercent", "image_gc_high", whole_number(0, 100)
    ),
    Setting("--image-gc-low-threshold", "imageGCLowThresholdPercent", "image_gc_low", whole_number(0, 100)),
    Setting("--container-log-max-size", "containerLogMaxSize", "log_max_bytes", size),
    Setting("--container-log-max-files", "containerLogMaxFiles", "log_max_files", whole_number(2)),
    Setting("--eviction-hard", "evictionHard", "eviction_hard", amounts),
    Setting("--eviction-soft", "evictionSoft", "eviction_soft", amounts),
    Setting("--eviction-soft-grace-period", "evictionSoftGracePeriod", "eviction_soft_grace", grace_periods),
    Setting(
        "--eviction-max-pod-grace-period",
        "evictionMaxPodGracePeriod",
        "eviction_max_pod_grace",
        whole_number(0),
    ),
    Setting("--eviction-minimum-reclaim", "evictionMinimumReclaim", "eviction_minimum_reclaim", reclaimed),
    Setting(
        "--eviction-pressure-transition-period",
        "evictionPressureTransitionPeriod",
        "eviction_pressure_transition",
        duration,
    ),
)
_BY_FLAG = {setting.flag: setting for setting in SETTINGS if setting.flag}
_BY_FIELD = {setting.field: setting for setting in SETTINGS if setting.field}


def chosen(file: Path | None, flags: Mapping[str, str], mounts: Path = MOUNTS) -> Mapping[str, Any]:
    """What differs from the defaults of `KubeletConfig`, by its names; `mounts` are this machine's. Raises
    SettingError."""
    given = dict(_of_file(file)) if file else {}
    given.update((_BY_FLAG[flag], text) for flag, text in flags.items())
    values = {setting.name: _read(setting, value) for setting, value in given.items()}
    _check(values)
    if values.get("single_process_oom_kill") is False and not _kills_together(mounts):
        raise SettingError("singleProcessOOMKill must not be explicitly set to false when using cgroup v1")
    return values


def _read(setting: Setting, value: object) -> Any:
    try:
        return setting.read(value)
    except ValueError as error:
        raise SettingError(f"{setting.both}: {error}") from error


def _check(values: Mapping[str, Any]) -> None:
    """What settings say of each other."""
    high = values.get("image_gc_high", _default("image_gc_high"))
    low = values.get("image_gc_low", _default("image_gc_low"))
    if low >= high:
        names = [_BY_FIELD[f"imageGC{which}ThresholdPercent"].both for which in ("Low", "High")]
        raise SettingError(f"{names[0]}: {low} must be less than {names[1]} {high}")
    for signal in values.get("eviction_soft", ()):
        if signal not in values.get("eviction_soft_grace", ()):
            needed = f"grace period must be specified for the soft eviction threshold {signal}"
            raise SettingError(f"{_BY_FIELD['evictionSoftGracePeriod'].both}: {needed}")


def _kills_together(mounts: Path) -> bool:
    """Whether the kernel can kill all of a container at once: where memory is cgroup v2's."""
    return any(h.version == 2 and "memory" in h.controllers for h in hierarchies(CGROUPS, mounts))


def _default(name: str) -> Any:
    return next(field.default for field in fields(KubeletConfig) if field.name == name)


def _of_file(file: Path) -> Iterator[tuple[Setting, object]]:
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
