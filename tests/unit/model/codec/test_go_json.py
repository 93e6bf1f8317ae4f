"""How Go names types, and where it says a value is."""

from __future__ import annotations

import pytest

from podling.model.codec.fields import shape_of
from podling.model.codec.json import GoJSONError, fit, go_type
from podling.model.types.container import Container, HTTPGetAction
from podling.model.types.pod import Pod


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (str, "string"),
        (int, "int32"),
        (bool, "bool"),
        (dict[str, bytes], "map[string][]uint8"),
        (list[Container], "[]v1.Container"),
        (int | str, "intstr.IntOrString"),
    ],
)
def test_go_type(type_: object, name: str) -> None:
    assert go_type(shape_of(type_)) == name


def test_what_fits_is_returned_without_what_is_unknown_or_null() -> None:
    document = {"spec": {"nodeName": "a", "x": 1, "hostname": None}, "y": 2}
    assert fit(document, Pod) == {"spec": {"nodeName": "a"}}


def test_a_place_names_the_innermost_struct_and_no_index() -> None:
    with pytest.raises(GoJSONError, match=r"Go struct field Container\.spec\.containers\.tty of type bool"):
        fit({"spec": {"containers": [{}, {"tty": 1}]}}, Pod)


def test_a_port_is_a_number_or_a_name() -> None:
    for port in (80, "http"):
        assert fit({"port": port}, HTTPGetAction) == {"port": port}
    with pytest.raises(GoJSONError, match="cannot unmarshal bool"):
        fit({"port": True}, HTTPGetAction)
