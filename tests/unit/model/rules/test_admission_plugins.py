"""Which admission plugins are on."""

from __future__ import annotations

import pytest

from podling.model.rules.admission_plugins import DEFAULT_PLUGINS, chosen_plugins


def test_plugins_are_added_to_the_usual_ones_and_taken_from_them() -> None:
    assert chosen_plugins("", "") == DEFAULT_PLUGINS
    assert chosen_plugins("AlwaysPullImages,Priority", "") == DEFAULT_PLUGINS | {"AlwaysPullImages"}
    # What podling has not is off already.
    assert chosen_plugins("", "LimitRanger,JobValidation") == DEFAULT_PLUGINS - {"LimitRanger"}


@pytest.mark.parametrize(
    ("enable", "disable", "why"),
    [
        ("Nope", "", 'enable-admission-plugins plugin "Nope" is unknown'),
        (
            "",
            "Nope,Foo",
            '[disable-admission-plugins plugin "Nope" is unknown, '
            'disable-admission-plugins plugin "Foo" is unknown]',
        ),
        (
            "AlwaysPullImages",
            "AlwaysPullImages",
            "[AlwaysPullImages] in enable-admission-plugins and disable-admission-plugins overlapped",
        ),
    ],
)
def test_names_that_are_wrong_are_refused(enable: str, disable: str, why: str) -> None:
    with pytest.raises(ValueError) as refused:
        chosen_plugins(enable, disable)
    assert str(refused.value) == why
