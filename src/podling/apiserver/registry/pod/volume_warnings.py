"""Warnings of volumes: plugins that are no more, and files hidden by a token."""

from __future__ import annotations

from collections.abc import Iterator

from podling.model.volume import Volume, VolumeProjection

GONE = {
    "photon_persistent_disk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "git_repo": ("gitRepo", "deprecated in v1.11"),
    "scale_io": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}


def warn_of_volumes(volumes: list[Volume], path: str) -> Iterator[str]:
    tokens: set[str] = set()
    for i, volume in enumerate(volumes):
        if volume.projected is not None:
            given = (source.service_account_token for source in volume.projected.sources)
            tokens.update(token.path for token in given if token is not None)
            continue
        for attribute, (wire, why) in GONE.items():
            if getattr(volume, attribute) is not None:
                yield f"{path}[{i}].{wire}: {why}"
    for i, volume in enumerate(volumes if tokens else ()):
        for source in volume.projected.sources if volume.projected is not None else ():
            for where, file in _files(source):
                if file in tokens:
                    source_path = f"{path}[{i}].projected.sources.{where}"
                    yield f'{source_path}: has duplicated path with ServiceAccountToken "{file}"'


def _files(source: VolumeProjection) -> Iterator[tuple[str, str]]:
    if source.config_map is not None:
        yield from ((f"configMap[{j}]", item.path) for j, item in enumerate(source.config_map.items))
    if source.secret is not None:
        yield from ((f"secrets[{j}]", item.path) for j, item in enumerate(source.secret.items))
    if source.downward_api is not None:
        yield from ((f"downwardAPI[{j}]", item.path) for j, item in enumerate(source.downward_api.items))
    if source.cluster_trust_bundle is not None:
        yield "ClusterTrustBundle", source.cluster_trust_bundle.path
