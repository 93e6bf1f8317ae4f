"""R-DBG-3: the kinds of container, as the runtime's labels have them."""

from __future__ import annotations

import pytest

from podling.kubelet.pod.containers import ContainerType, type_of_label


@pytest.mark.parametrize("kind", ContainerType)
def test_every_kind_is_read_from_its_label(kind: ContainerType) -> None:
    assert type_of_label(kind.value) is kind


@pytest.mark.parametrize("label", ["", "DEBUG", "ephemeral"])
def test_a_container_without_a_known_label_counts_as_regular(label: str) -> None:
    assert type_of_label(label) is ContainerType.REGULAR
