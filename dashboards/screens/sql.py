"""SQL: the recipes, and a box for one's own statement; rows as a table, a chart and a file."""

from __future__ import annotations

import time

import streamlit as st

from compare.parameter_values import BadValueError
from compare.recipes import Recipe, shown_default
from compare.store import migrate
from compare.store.errors import MIGRATE_HINT, StoreQueryError
from dashboards.questions import sql_box as questions
from dashboards.questions.sql_box import Statement
from dashboards.screens.operations_storage import size_words
from dashboards.screens.sql_result import Answered, show_answer
from dashboards.shell import states
from dashboards.shell.address import LONGEST_VALUE
from dashboards.shell.context import Context, utc_now
from dashboards.shell.hidden_text import TextHidden
from dashboards.shell.hostile import in_code, in_markdown, visible
from dashboards.shell.reader import Cancelled
from dashboards.words.recipes import question_of
from ingest.errors import FatalError, RetryError

ICON = ":material/terminal:"

RECIPE, OWN = "recipe", "own"
LONGEST_SQL = 100_000
FIRST_STATEMENT = """SELECT verdict, count() AS pairs, round(avg(severity), 3) AS severity_mean
FROM pairs_v1
WHERE experiment = {experiment:String} AND candidate = {candidate:String}
GROUP BY verdict
ORDER BY pairs DESC"""
_INSTEAD = {"shell.too_large": "sql_box.too_large"}
_INSTEAD_OWN = {"shell.too_large": "sql_box.too_large_own"}
_WANTED = "sql wanted"
_ANSWER = "sql answer"
_TEXT = "sql text"
_KEPT = "sql kept"


class _NotSent(Exception):  # noqa: N818 - no error: what is to be said
    """The page does not send the statement; the text says why."""


_EXPLAINED = (Cancelled, TextHidden, RetryError, FatalError, _NotSent)


def show(context: Context) -> None:
    """The whole page."""
    say = context.say
    st.title(say("sql_box.title"))
    mode = RECIPE
    if context.visitor.shows_text:
        mode = context.address.choice(
            st.container(),
            say("sql_box.mode"),
            "mode",
            (RECIPE, OWN),
            lambda mode: say(f"sql_box.mode_{mode}"),
        )
    else:
        st.info(say("sql_box.own_hidden"), icon="🔒")
    statement, name, may_start = _recipe(context) if mode == RECIPE else _own(context)
    st.caption(
        say(
            "sql_box.limits",
            seconds=questions.SECONDS,
            rows=f"{questions.PAGE_ROWS:,}",
            size=size_words(questions.PAGE_BYTES),
        )
    )
    pressed = st.button(say("sql_box.run"), type="primary", icon=":material/play_arrow:")
    if statement is None:
        return
    if pressed or may_start:
        st.session_state[_WANTED] = statement
    if pressed:
        st.session_state.pop(_ANSWER, None)
    if st.session_state.get(_WANTED) != statement:
        st.caption(say("sql_box.press"))
        return
    if mode == RECIPE:
        context.address.keep("run", "1")
    # While the store is asked, what the last run said is gone, not grey; a kept answer stays as it is.
    known: Answered | None = st.session_state.get(_ANSWER)
    is_known = known is not None and known.statement == statement
    said, shown = st.empty(), st.container() if is_known else st.empty()
    answered = known
    if not is_known:
        try:
            answered = _answered(context, statement, is_wanted=pressed)
        except _EXPLAINED as error:
            with said.container():
                _explain(context, statement, error, is_own=mode == OWN)
    if answered is not None:
        with shown if is_known else shown.container():
            show_answer(context, answered, name)


def _recipe(context: Context) -> tuple[Statement | None, str, bool]:
    """The chosen recipe with its values, None if one of them does not fit, which is then said; its name, and
    whether a link asks to run it now.
    """
    say, address = context.say, context.address
    # A recipe is ours and bounded: a link may run it. A statement of a stranger waits for a press of Run.
    linked, may_start = address.text("recipe"), address.text("run") == "1" and address.is_new("run", "recipe")
    known = questions.recipes(shows_text=context.visitor.shows_text)
    chosen = address.selectbox(
        st.container(),
        say("sql_box.recipe"),
        "recipe",
        list(known),
        show=lambda name: f"@{name}: {question_of(known[name], say.language)}",
    )
    recipe = known[chosen]
    st.caption(f"{say('sql_box.grain', grain=recipe.grain)} {recipe.note}")
    given = _values(context, recipe)
    with st.expander(say("sql_box.statement")):
        st.code(recipe.statement, language="sql", wrap_lines=True)
    try:
        statement = Statement(recipe.statement, dict(recipe.bind(given)))
    except BadValueError as error:
        st.error(_bad_value(context, error))
        return None, recipe.name, False
    # Nor does one that names none of ours run the recipe that is shown instead.
    return statement, recipe.name, may_start and linked in ("", recipe.name)


def _values(context: Context, recipe: Recipe) -> dict[str, str]:
    """What was typed for the parameters; nothing where a parameter that is no text was left empty."""
    say, given = context.say, dict[str, str]()
    if not recipe.parameters:
        return given
    columns = st.columns(min(len(recipe.parameters), 4))
    for number, parameter in enumerate(recipe.parameters):
        # Two recipes may have other defaults for the same name.
        name = f"{recipe.name}.{parameter.name}"
        first = context.series.experiment if parameter.name == "experiment" else parameter.default
        if name not in st.session_state and not context.address.given(name):
            st.session_state[name] = first or ""
        text = context.address.text_input(
            columns[number % len(columns)],
            in_markdown(parameter.name),
            name,
            help=say(
                "sql_box.parameter_help",
                type=in_markdown(parameter.type),
                meaning=in_markdown(parameter.meaning, 400),
                default=in_markdown(shown_default(parameter)),
            ),
        )
        # Empty is a value too: all experiments.
        context.address.keep(name, text)
        if text or parameter.type == "String":
            given[parameter.name] = text
    return given


def _bad_value(context: Context, error: BadValueError) -> str:
    return context.say(
        f"sql_box.bad_{error.kind}",
        name=in_markdown(error.name),
        low=error.low,
        high=error.high,
        value=in_code(error.value) or "“”",
    )


def _own(context: Context) -> tuple[Statement, str, bool]:
    say, address = context.say, context.address
    linked = address.text("sql")
    if linked and address.is_new("sql"):
        st.session_state[_TEXT] = linked
    elif _TEXT not in st.session_state:
        # The widget forgets on another page what was typed here.
        st.session_state[_TEXT] = st.session_state.get(_KEPT, FIRST_STATEMENT)
    sql = st.text_area(
        say("sql_box.box"),
        key=_TEXT,
        height=220,
        max_chars=LONGEST_SQL,
        help=say("sql_box.box_help", experiment="`{experiment:String}`", candidate="`{candidate:String}`"),
    ).strip()
    st.session_state[_KEPT] = sql
    if len(sql) <= LONGEST_VALUE:
        address.keep("sql", *([sql] if sql else []))
    else:
        st.caption(say("sql_box.long"))
    views = migrate.shipped_views()
    with st.expander(say("sql_box.views", count=len(views))):
        st.caption(say("sql_box.views_note"))
        st.code(" ".join(sorted(views)), language=None, wrap_lines=True)
    return questions.bound(sql, context.series.parameters()), "gnomon", False


def _answered(context: Context, statement: Statement, *, is_wanted: bool) -> Answered:
    """The answer, which is kept as long as the same is asked. Raises _NotSent, and as `questions.run`."""
    if not statement.sql:
        raise _NotSent(context.say("sql_box.empty"))
    if reason := questions.why_refused(statement.sql):
        raise _NotSent(context.say("sql_box.refused"), reason)
    began = time.monotonic()
    try:
        result = questions.run(context.reader, statement, is_wanted=is_wanted)
    except RetryError as error:
        if not states.is_owner_gone(error):
            raise
        st.caption(context.say("sql_box.owner_gone"))
        result = questions.run(context.reader, statement)
    answered = Answered(statement, result, time.monotonic() - began, utc_now())
    st.session_state[_ANSWER] = answered
    return answered


def _explain(context: Context, statement: Statement, error: Exception, *, is_own: bool) -> None:
    say, instead = context.say, _INSTEAD_OWN if is_own else _INSTEAD
    if isinstance(error, _NotSent):
        headline, *reasons = map(str, error.args)
        st.error(headline)
        if reasons:
            st.text(visible("\n".join(reasons), 2_000))
    elif isinstance(error, FatalError):
        _refused(context, statement.sql, error, is_own=is_own)
    else:
        # Too slow or too large for its limits is no reason to take the page away.
        states.explain(error, say, context.reader.forget, instead=instead)


def _refused(context: Context, sql: str, error: FatalError, *, is_own: bool) -> None:
    say, message = context.say, str(error)
    code = error.code if isinstance(error, StoreQueryError) else None
    if code in states.NO_RIGHT or states.is_too_large(error):
        states.explain(error, say, context.reader.forget, instead=_INSTEAD_OWN if is_own else _INSTEAD)
        return
    at = questions.position(message)
    if at is not None:
        st.error(say("sql_box.error_at", line=at[0], column=at[1]))
        st.code(visible(questions.pointed(sql, *at)), language=None)
    elif is_own and code in states.NOT_THERE and MIGRATE_HINT not in message:
        st.error(say("sql_box.not_there"))
    else:
        st.error(say("sql_box.error"))
    st.text(visible(message, 2_000))
