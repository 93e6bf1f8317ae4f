"""Faults of seccomp and AppArmor profiles: of the fields, and of the annotations they once were."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.field import forbidden, invalid, not_supported, required, too_long
from podling.apiserver.registry.volume.paths import validate_descending
from podling.model.container import AppArmorProfile, SeccompProfile
from podling.model.errors import Cause

PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
LOCAL = "localhost/"
ANNOTATED = {"RuntimeDefault": ("runtime/default", "docker/default"), "Unconfined": ("unconfined",)}
MAX_PROFILE = 4095
"""The longest path there is."""


def validate_seccomp(profile: SeccompProfile | None, path: str) -> Iterator[Cause]:
    if profile is None:
        return
    yield from _validate_type(profile.type, f"{path}.type", "seccompProfile")
    where = f"{path}.localhostProfile"
    if profile.type != "Localhost":
        if profile.localhost_profile is not None:
            yield invalid(where, profile, "can only be set when seccomp type is Localhost")
    elif profile.localhost_profile is None:
        yield required(where, "must be set when seccomp type is Localhost")
    else:
        yield from validate_descending(profile.localhost_profile, where)


def validate_app_armor(profile: AppArmorProfile | None, path: str) -> Iterator[Cause]:
    if profile is None:
        return
    yield from _validate_type(profile.type, f"{path}.type", "appArmorProfile")
    where, named = f"{path}.localhostProfile", profile.localhost_profile
    if profile.type == "Localhost":
        yield from _validate_loaded_profile(named, where)
    elif named is not None and profile.type in PROFILE_TYPES:
        yield invalid(where, named, "can only be set when AppArmor type is Localhost")


def _validate_loaded_profile(named: str | None, path: str) -> Iterator[Cause]:
    if not named:
        yield required(path, "must be set when AppArmor type is Localhost")
        return
    if named != named.strip():
        yield invalid(path, named, "must not be padded with whitespace")
    if len(named.encode()) > MAX_PROFILE:
        yield too_long(path, MAX_PROFILE)


def _validate_type(given: str, path: str, field: str) -> Iterator[Cause]:
    if not given:
        yield required(path, f"type is required when {field} is set")
    elif given not in PROFILE_TYPES:
        yield not_supported(path, given, PROFILE_TYPES)


def validate_match(
    profile: SeccompProfile | AppArmorProfile, annotation: str, path: str, what: str
) -> Iterator[Cause]:
    """A new pod that says it in both ways must say the same."""
    if profile.type != "Localhost":
        matches = annotation in ANNOTATED.get(profile.type, (annotation,))
    else:
        matches = annotation.startswith(LOCAL)
        if matches and annotation.removeprefix(LOCAL) != profile.localhost_profile:
            why = f"{what} profile in annotation and field must match"
            yield forbidden(f"{path}.localhostProfile", why)
    if not matches:
        yield forbidden(f"{path}.type", f"{what} type in annotation and field must match")
