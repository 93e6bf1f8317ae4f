"""AppArmor profiles of a new pod that are said by annotation, as they once were, become fields."""

from __future__ import annotations

import msgspec

from podling.apiserver.registry.container.security_profiles import LOCAL, validate_app_armor
from podling.apiserver.registry.pod.annotations import APP_ARMOR
from podling.apiserver.registry.pod.containers import containers_with_paths
from podling.model.container import AppArmorProfile, SecurityContext
from podling.model.pod import Pod

_TYPES = {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}


def adopt_app_armor_annotations(pod: Pod) -> None:
    """A field that is set stands; an annotation that means no valid profile is left to validation."""
    if all(not key.startswith(APP_ARMOR) for key in pod.metadata.annotations):
        return
    if pod.spec.os is not None and pod.spec.os.name == "windows":
        return
    of_pod = pod.spec.security_context.app_armor_profile if pod.spec.security_context else None
    for container, _ in containers_with_paths(pod.spec, "spec"):
        context = container.security_context or SecurityContext()
        profile = _profile(pod.metadata.annotations.get(APP_ARMOR + container.name, ""))
        if profile is not None and profile != of_pod and context.app_armor_profile is None:
            container.security_context = msgspec.structs.replace(context, app_armor_profile=profile)


def _profile(annotation: str) -> AppArmorProfile | None:
    if annotation in _TYPES:
        return AppArmorProfile(type=_TYPES[annotation])
    if not annotation.startswith(LOCAL):
        return None
    profile = AppArmorProfile(type="Localhost", localhost_profile=annotation.removeprefix(LOCAL))
    return None if any(validate_app_armor(profile, "")) else profile
