"""What is chosen is in the address, and a link shows the same to whoever opens it."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.runtime.state.query_params_proxy import QueryParamsProxy
from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from dashboards.shell.address import Address
    from dashboards.words import Words

    address = Address(Words("en"))
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
    assert dict(app.query_params) == {"one": "b"}


def test_a_link_restores_everything_and_writes_the_same_address() -> None:
    app = opened(**LINK)
    assert chosen(app) == ALL
    assert dict(app.query_params) == LINK


def test_an_address_that_is_right_is_told_again_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    # The browser may have been told another one by a run that ended after the link was followed. Told in
    # another order, it would add a page to what its back button goes through.
    told: list[list[str]] = []
    tell = QueryParamsProxy.from_dict

    def noted(self: QueryParamsProxy, kept: dict[str, list[str]]) -> None:
        told.append(list(kept))
        tell(self, kept)

    monkeypatch.setattr(QueryParamsProxy, "from_dict", noted)
    backwards = dict(reversed(LINK.items()))
    opened(**backwards)
    assert told == [list(backwards)]


def test_a_link_that_does_not_fit_counts_as_nothing() -> None:
    app = opened(one="nowhere", number="7", on="yes", choice="<b>", text="x" * 5_000, other="gone")
    # A value beyond 500 characters is cut; a parameter that nothing reads goes away.
    assert chosen(app) == NOTHING | {"text": "x" * 500}
    assert "other" not in app.query_params
    assert opened(number="nan").query_params == {"one": "b"}
    # What may have been a value once is kept, and can be taken out.
    assert chosen(opened(many=["x", "old", "old", ""]))["many"] == ["x", "old"]


def test_what_does_not_fit_is_said_and_the_first_few_are_named() -> None:
    (warning,) = opened(one="<b>", number="inf", on="yes", choice="", text="any").warning
    said = " of the link is not known here (any more): "
    assert warning.value.split("\n\n") == [
        f"one{said}“\\<b\\>”. Shown instead: b",
        "number of the link is no number that it may be: “inf”. It is left out.",
        f"on{said}“yes”. It is left out; the page shows what it shows without it.",
        f"choice{said}“”. Shown instead: first",
    ]
    (warning,) = opened(many=[str(number) for number in range(11)]).warning
    assert warning.value.split("\n\n")[7:] == [
        f"many{said}“7”. It stays chosen, but nothing matches it.",
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


def test_a_number_is_written_with_all_its_digits() -> None:
    app = opened(number="0.12345678")
    assert chosen(app)["number"] == 0.12345678
    assert dict(app.query_params) == {"one": "b", "number": "0.12345678"}
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
    assert dict(app.query_params) == LINK
