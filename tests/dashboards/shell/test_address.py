"""What is chosen is in the address, and a link shows the same to whoever opens it."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit
from streamlit.runtime.state.query_params_proxy import QueryParamsProxy
from streamlit.testing.v1 import AppTest

from dashboards.shell import browser
from tests.dashboards.pages import address_of


def page() -> None:
    import streamlit as st

    from dashboards.shell.address import Address
    from dashboards.words import Words

    address = Address(Words("en"), getattr(st, "page_here", ""))
    if st.session_state.get("is_broken_off"):
        return
    place = st.container()
    st.json(
        {
            "one": address.selectbox(place, "one", "one", ["a", "b"], default="b"),
            "many": address.multiselect(place, "many", "many", ["x", "y"]),
            "text": address.text_input(place, "text", "text"),
            "number": address.number_input(place, "number", "number", least=0.0, most=1.0),
            "on": address.toggle(place, "on", "on"),
            "choice": address.choice(place, "choice", "choice", ("first", "second"), str),
        }
    )
    address.write()


def opened(**parameters: Any) -> AppTest:
    app = AppTest.from_function(page)
    for name, value in parameters.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception, app.exception
    return app


def chosen(app: AppTest) -> dict[str, Any]:
    import json

    made: dict[str, Any] = json.loads(app.json[0].value)
    return made


NOTHING: dict[str, Any] = {"one": "b", "many": [], "text": "", "number": None, "on": False, "choice": "first"}
ALL: dict[str, Any] = {
    "one": "a",
    "many": ["y", "x"],
    "text": "two words",
    "number": 0.25,
    "on": True,
    "choice": "second",
}
LINK = {
    "one": "a",
    "many": ["y", "x"],
    "text": "two words",
    "number": "0.25",
    "on": "1",
    "choice": "second",
}


def test_without_a_link_the_defaults_hold_and_the_address_is_short() -> None:
    app = opened()
    assert chosen(app) == NOTHING
    assert address_of(app) == {"one": "b"}


def test_a_link_restores_everything_and_writes_the_same_address() -> None:
    app = opened(**LINK)
    assert chosen(app) == ALL
    assert address_of(app) == LINK


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """How each address was written, and its names in order."""
    made: list[tuple[str, list[str]]] = []
    tell = QueryParamsProxy.from_dict

    def noted(self: QueryParamsProxy, kept: dict[str, list[str]]) -> None:
        made.append(("added", list(kept)))
        tell(self, kept)

    monkeypatch.setattr(QueryParamsProxy, "from_dict", noted)
    monkeypatch.setattr(
        browser, "replace_address", lambda page, pages, before, after: made.append(("replaced", list(after)))
    )
    return made


def test_the_first_address_of_a_visit_replaces_the_links_and_a_choice_adds_one(
    told: list[tuple[str, list[str]]],
) -> None:
    # Told in another order, an address would be one more that the back button goes through.
    backwards = dict(reversed(LINK.items()))
    app = opened(**backwards)
    assert told == [("replaced", list(backwards))]
    app.toggle[0].set_value(False).run()
    assert told[1:] == [("added", [name for name in LINK if name != "on"])]


def test_what_the_browser_had_before_it_was_told_is_no_other_link(told: list[tuple[str, list[str]]]) -> None:
    app = opened(text="any")
    app.toggle[0].set_value(True).run()
    assert told == [("replaced", ["one", "text"]), ("added", ["one", "text", "on"])]
    # The first address was replaced by a script: Streamlit's browser sends the link's until it is told more.
    assert chosen(app) == NOTHING | {"text": "any", "on": True}


def test_the_address_of_a_page_that_was_still_ending_is_no_link_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = opened(text="old", on="1")
    late = address_of(app)
    monkeypatch.setattr(streamlit, "page_here", "next", raising=False)
    # A link to the next page, broken off by a choice that the browser sent with the late address.
    for name in list(app.query_params):
        del app.query_params[name]
    app.query_params["text"] = "new"
    app.session_state["is_broken_off"] = True
    app.run()
    for name, value in late.items():
        app.query_params[name] = value
    app.session_state["is_broken_off"] = False
    app.run()
    assert chosen(app)["text"] == "new"
    assert address_of(app)["text"] == "new"


def test_an_address_that_is_asked_for_is_of_its_own_page_only(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(text="any")
    app.session_state["address asked for"] = ("elsewhere", {"text": ["other"]})
    app.run()
    assert chosen(app)["text"] == "any"
    app.session_state["address asked for"] = ("", {"text": ["other"]})
    app.run()
    assert chosen(app)["text"] == "other"
    assert app.query_params["text"] == "other"


def test_a_script_carries_no_tag_of_a_link() -> None:
    app = opened(text="</script><script>alert(1)</script>\u2028")
    (script,) = (one.proto.body for one in app.get("html"))
    assert script.count("<") == 2


def test_a_link_that_does_not_fit_counts_as_nothing() -> None:
    app = opened(one="nowhere", number="7", on="yes", choice="<b>", text="x" * 5_000, other="gone")
    # A value beyond 500 characters is cut; a parameter that nothing reads goes away.
    assert chosen(app) == NOTHING | {"text": "x" * 500}
    assert "other" not in address_of(app)
    assert address_of(opened(number="nan")) == {"one": "b"}
    # What may have been a value once is kept, and can be taken out.
    assert chosen(opened(many=["x", "old", "old", ""]))["many"] == ["x", "old"]


def test_what_does_not_fit_is_said_and_the_first_few_are_named() -> None:
    (warning,) = opened(one="<b>", number="inf", on="yes", choice="", text="any").warning
    said = " of the link is not known here (any more): "
    assert warning.value.split("\n\n") == [
        f"one{said}“` <b> `”. Shown instead: b",
        "number of the link is no number that it may be: “` inf `”. It is left out.",
        f"on{said}“` yes `”. It is left out; the page shows what it shows without it.",
        f"choice{said}“”. Shown instead: first",
    ]
    (warning,) = opened(many=[str(number) for number in range(11)]).warning
    assert warning.value.split("\n\n")[7:] == [
        f"many{said}“` 7 `”. It stays chosen, but nothing matches it.",
        "And 3 more values of the link.",
    ]
    assert not opened(**LINK).warning


def test_what_is_changed_is_written_and_a_later_link_goes_before_it() -> None:
    app = opened(**LINK)
    app.selectbox[0].set_value("b").run()
    app.toggle[0].set_value(False).run()
    assert chosen(app) == ALL | {"one": "b", "on": False}
    assert app.query_params["one"] == "b"
    assert "on" not in app.query_params
    # The back button: the bar says something else than was written there.
    app.query_params["one"] = "a"
    app.run()
    assert chosen(app)["one"] == "a"
    # Turning to the page by the side bar empties the bar, and changes nothing.
    for name in list(app.query_params):
        del app.query_params[name]
    app.run()
    assert chosen(app) == ALL | {"on": False}
    assert app.query_params["text"] == "two words"


def test_a_link_that_leaves_values_out_shows_their_defaults_also_to_who_had_others() -> None:
    app = opened(**LINK)
    for name in list(app.query_params):
        del app.query_params[name]
    app.query_params["text"] = "other"
    app.run()
    assert chosen(app) == NOTHING | {"text": "other"}
    assert address_of(app) == {"one": "b", "text": "other"}


def test_a_number_is_written_with_all_its_digits() -> None:
    app = opened(number="0.12345678")
    assert chosen(app)["number"] == 0.12345678
    assert address_of(app) == {"one": "b", "number": "0.12345678"}
    app.number_input[0].set_value(0.1 + 0.2).run()
    assert app.query_params["number"] == "0.3"


def test_a_link_back_from_a_run_that_wrote_no_address_restores_everything() -> None:
    app = opened(**LINK)
    # Another page, left before it ended, or a store that was away: Streamlit forgets the widgets.
    app.session_state["is_broken_off"] = True
    app.run()
    app.session_state["is_broken_off"] = False
    app.run()
    assert chosen(app) == ALL
    assert address_of(app) == LINK
