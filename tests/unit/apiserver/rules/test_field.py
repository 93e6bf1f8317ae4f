"""Parts of objects in messages are shown as Kubernetes does (R-SYS-8)."""

from __future__ import annotations

from podling.apiserver.rules.field import internal, shown
from podling.model.types.references import ObjectReference
from podling.model.types.resource import CELDeviceSelector, DeviceSelector, OpaqueDeviceConfiguration


def test_acronyms_are_written_as_go_names_them() -> None:
    reference = ObjectReference(uid="u", api_version="v1")
    assert '"UID":"u","APIVersion":"v1"' in shown(internal(reference))
    selector = DeviceSelector(cel=CELDeviceSelector(expression="true"))
    assert shown(internal(selector)) == '{"CEL":{"Expression":"true"}}'


def test_what_is_any_json_is_shown_as_it_is() -> None:
    opaque = OpaqueDeviceConfiguration(driver="d", parameters={})
    assert shown(internal(opaque)) == '{"Driver":"d","Parameters":{}}'
