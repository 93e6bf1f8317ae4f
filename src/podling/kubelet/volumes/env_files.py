"""Reads the files that `fileKeyRef` takes variables from, out of the pod's volumes, when a container is
created. The container need not mount the volume.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from podling.kubelet.cri_config.env_file import EnvFileError, lines_of, value_in
from podling.kubelet.cri_config.environment import FileKey, FoundInFile
from podling.kubelet.volumes.confined_path import opened_file
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.set_up import MountedVolume

log = logging.getLogger(__name__)


def read_env_files(
    keys: Sequence[FileKey], volumes: Mapping[str, MountedVolume]
) -> dict[FileKey, FoundInFile]:
    """The value of each key whose volume exists. Blocking."""
    return {key: _read(key, volumes[key.volume]) for key in keys if key.volume in volumes}


def _read(key: FileKey, volume: MountedVolume) -> FoundInFile:
    path = str(volume.path / key.path.lstrip("/"))
    try:
        with opened_file(volume.path, key.path) as file:
            return FoundInFile(path, value_in(lines_of(file), key.name))
    except (EnvFileError, VolumeError, OSError) as error:
        log.warning("cannot take variables from %s: %s", path, error)
        return FoundInFile(path, None)
