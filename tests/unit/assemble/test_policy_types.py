"""The types of what is built in are known beside any API server, whatever it says of them."""

from __future__ import annotations

from podling.assemble.policy_types import type_check
from podling.model.codec import json
from podling.model.types.admissionregistration import ValidatingAdmissionPolicySpec


async def test_types_are_known_without_a_document() -> None:
    data = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "object.spec.replicas > 1"}, {"expression": "params.data.a == 'b'"}],
    }
    spec = json.from_data(data, ValidatingAdmissionPolicySpec)
    (found,) = await type_check(spec, [("v1", "Pod"), ("apps/v1", "Deployment")], {})
    assert found.field_ref == "spec.validations[0].expression"
    assert found.warning.startswith("/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'")
    assert "Kind=Deployment" not in found.warning
