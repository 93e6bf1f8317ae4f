"""Compiles the definitions of what is spoken over gRPC (src/podling/**/*.proto) when podling is built.

The compiled modules are not kept in version control: the .proto files are the source.
`python hatch_build.py` does the same in a working tree.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from grpc_tools import protoc
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def compile_protos(root: Path) -> None:
    """Compile every .proto in place; raises RuntimeError when protoc refuses one."""
    source = root / "src"
    protos = sorted((source / "podling").rglob("*.proto"))
    includes = files("grpc_tools") / "_proto"
    code = protoc.main(
        [
            "protoc",
            f"-I{source}",
            f"-I{includes}",
            f"--python_out={source}",
            f"--pyi_out={source}",
            *(str(proto) for proto in protos),
        ]
    )
    if code != 0:
        raise RuntimeError(f"protoc failed with code {code} on {', '.join(p.name for p in protos)}")


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        compile_protos(Path(self.root))


if __name__ == "__main__":
    compile_protos(Path(__file__).parent)
