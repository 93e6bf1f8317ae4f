"""Expressions as trees: the messages of `cel.expr`, as far as they are read here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.any_pb2 import Any as Envelope
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "int64": Field.TYPE_INT64,
    "int32": Field.TYPE_INT32,
    "uint64": Field.TYPE_UINT64,
    "bool": Field.TYPE_BOOL,
    "double": Field.TYPE_DOUBLE,
    "string": Field.TYPE_STRING,
    "bytes": Field.TYPE_BYTES,
}
_MESSAGES: Mapping[str, str] = {
    "Constant": "1 null int64, 2 bool bool, 3 int int64, 4 uint uint64, 5 double double, 6 string string, "
    "7 bytes bytes",
    "Ident": "1 name string",
    "Select": "1 operand Expr, 2 field string, 3 test_only bool",
    "Call": "1 target Expr, 2 function string, 3 args *Expr",
    "List": "1 elements *Expr, 2 optional_indices *int32",
    "Entry": "1 id int64, 2 field_key string, 3 map_key Expr, 4 value Expr, 5 optional bool",
    "Structure": "1 message_name string, 2 entries *Entry",
    "Comprehension": "1 iter_var string, 8 iter_var2 string, 3 accu_var string, 2 iter_range Expr, "
    "4 accu_init Expr, 5 loop_condition Expr, 6 loop_step Expr, 7 result Expr",
    "Expr": "2 id int64, 3 const Constant, 4 ident Ident, 5 select Select, 6 call Call, 7 list List, "
    "8 structure Structure, 9 comprehension Comprehension",
    "Position": "1 key int64, 2 value int32",
    "SourceInfo": "4 positions *Position",
    "ParsedExpr": "2 expr Expr, 3 source_info SourceInfo",
}


def _class() -> Any:
    pool, package = DescriptorPool(), "podling.cel"
    file = descriptor_pb2.FileDescriptorProto(name="cel.proto", package=package, syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for line in fields.split(", "):
            number, wire, type_ = line.split()
            label = Field.LABEL_REPEATED if type_.startswith("*") else Field.LABEL_OPTIONAL
            made = message.field.add(name=wire, number=int(number), label=label)
            if (plain := type_.lstrip("*")) in _SCALARS:
                made.type = _SCALARS[plain]
            else:
                made.type, made.type_name = Field.TYPE_MESSAGE, f".{package}.{plain}"
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"{package}.ParsedExpr"))


_PARSED = _class()


class Tree:
    """An expression: its root, and where each part of it stands, in characters from its start."""

    def __init__(self, root: Any, positions: Mapping[int, int], text: str) -> None:
        self.root, self.positions, self._text = root, positions, text

    def position(self, id: int) -> int:
        return int(self.positions.get(id, 0))

    def start(self, part: Any) -> int:
        """As `position`, but of an object its brace."""
        at = self.position(part.id)
        return max(at, self._text.find("{", at)) if which(part) == "structure" else at

    def parts(self) -> Iterator[Any]:
        return parts_of(self.root)


def tree_of(expression: Any, text: str) -> Tree:
    """Of what the library has parsed."""
    whole = _PARSED.FromString(Envelope.FromString(expression.serialize()).value)
    return Tree(whole.expr, {one.key: one.value for one in whole.source_info.positions}, text)


def joined(text: str, around: Tree, inner: Mapping[str, tuple[Tree, int]]) -> Tree:
    """The tree of a text, from that of a text in which names stand for some of it. `inner`: by these names,
    the trees of what is there, in which there may be more of the names, and where it begins. All of them are
    changed."""
    positions, last = dict(around.positions), max(around.positions, default=0)
    for tree, start in inner.values():
        positions |= {id_ + last: at + start for id_, at in tree.positions.items()}
        for part in tree.parts():
            part.id += last
            for entry in part.structure.entries if which(part) == "structure" else ():
                entry.id += last
        last = max(positions)
    for part in around.parts():
        # What is put here may be a name again, and else is gone through next.
        while part.HasField("ident") and part.ident.name in inner:
            part.CopyFrom(inner[part.ident.name][0].root)
    return Tree(around.root, positions, text)


def parts_of(node: Any) -> Iterator[Any]:
    """A part with all below it."""
    waiting = [node]
    while waiting:
        at = waiting.pop()
        yield at
        waiting.extend(_below(at))


def which(node: Any) -> str:
    """What a part of an expression is: `const`, `call`, …"""
    return next((field.name for field, _ in node.ListFields() if field.name != "id"), "")


def _below(at: Any) -> Iterator[Any]:
    part: Any = getattr(at, which(at), None)
    match which(at):
        case "select":
            yield part.operand
        case "call":
            if part.HasField("target"):
                yield part.target
            yield from part.args
        case "list":
            yield from part.elements
        case "structure":
            for entry in part.entries:
                if entry.HasField("map_key"):
                    yield entry.map_key
                yield entry.value
        case "comprehension":
            yield from (part.iter_range, part.accu_init, part.loop_condition, part.loop_step, part.result)
