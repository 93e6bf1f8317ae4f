"""R-SYS-1: which options of a list or a watch contradict each other."""

import pytest

from podling.apiserver.verbs.list_options import check_list, check_watch, revision
from podling.model.errors import StatusError
from podling.model.types.meta import ListOptions

GOOD_LISTS = [
    ListOptions(),
    ListOptions(resource_version="0"),
    ListOptions(resource_version="5", resource_version_match="Exact"),
    ListOptions(resource_version="0", resource_version_match="NotOlderThan"),
    ListOptions(continue_="x", limit=5),
]
BAD_LISTS = [
    (ListOptions(resource_version_match="Exact"), "forbidden unless resourceVersion is provided"),
    (ListOptions(resource_version="0", resource_version_match="Exact"), 'forbidden for resourceVersion "0"'),
    (ListOptions(resource_version="5", resource_version_match="Near"), 'Unsupported value: "Near"'),
    (ListOptions(continue_="x", resource_version_match="Exact"), "when continue is provided"),
    (ListOptions(continue_="x", resource_version="5"), "not allowed when using continue"),
    (ListOptions(send_initial_events=True), "sendInitialEvents is forbidden for list"),
]
BAD_WATCHES = [
    (ListOptions(resource_version_match="Exact"), "unless sendInitialEvents is provided"),
    (ListOptions(send_initial_events=True), "requires setting resourceVersionMatch to NotOlderThan"),
]


@pytest.mark.parametrize("wanted", GOOD_LISTS)
def test_good_lists(wanted: ListOptions) -> None:
    check_list(wanted)


@pytest.mark.parametrize(("wanted", "message"), BAD_LISTS)
def test_bad_lists(wanted: ListOptions, message: str) -> None:
    with pytest.raises(StatusError, match=message):
        check_list(wanted)


@pytest.mark.parametrize(("wanted", "message"), BAD_WATCHES)
def test_bad_watches(wanted: ListOptions, message: str) -> None:
    with pytest.raises(StatusError, match=message):
        check_watch(wanted)


def test_good_watches() -> None:
    check_watch(ListOptions(resource_version="5"))
    check_watch(ListOptions(send_initial_events=True, resource_version_match="NotOlderThan"))


@pytest.mark.parametrize(("text", "number"), [("", 0), ("0", 0), ("17", 17)])
def test_revisions(text: str, number: int) -> None:
    assert revision(text) == number


@pytest.mark.parametrize("text", ["-1", "abc", "1.5", "²", str(1 << 64), "9" * 5000])
def test_no_revisions(text: str) -> None:
    with pytest.raises(StatusError) as raised:
        revision(text)
    assert raised.value.code == 400
