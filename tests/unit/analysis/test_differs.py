"""What is different about some sessions."""

from rollscope.analysis.details import detail_labels
from rollscope.analysis.differs import differences
from rollscope.analysis.rows import SessionRow

S = 1_000_000_000


def _sessions(count: int, first_id: int = 0) -> list[SessionRow]:
    """Give sessions that differ in nothing that matters."""
    return [
        SessionRow(
            span_id=first_id + n,
            start_ns=0,
            end_ns=S,
            host=f"host-{n % 4}",
            task_key=f"math/{n % 6}",
            tokens_out=100 + n % 10,
        )
        for n in range(count)
    ]


def _groups() -> tuple[list[SessionRow], list[SessionRow]]:
    return _sessions(24), _sessions(240, 1000)


def test_a_host_that_most_of_them_share_is_named() -> None:
    chosen, rest = _groups()
    for session in chosen[:17]:
        session.host = "host-07"
    for session in rest[:8]:
        session.host = "host-07"

    found = differences(chosen, rest)

    assert found.rows[0].column == "host"
    assert found.rows[0].value == "host-07"
    assert found.rows[0].effect == 17 / 24 - 8 / 240
    assert found.rows[0].text.startswith("host-07: 71 % of these, 3 % of the rest (n 24 / 240, q ")
    assert found.text == f"{found.rows[0].text}."


def test_numbers_that_tend_to_be_larger_are_named() -> None:
    chosen, rest = _groups()
    for session in chosen:
        session.tokens_out = (session.tokens_out or 0) + 5000

    (row,) = differences(chosen, rest).rows

    assert (row.column, row.value, row.effect) == ("tokens", None, 1.0)
    assert row.text.startswith("tokens: median 5,103 of these, 104 of the rest (n 24 / 240, q ")


def test_nothing_distinguishes_what_is_alike() -> None:
    found = differences(*_groups())

    assert found.rows == []
    assert found.text == f"Nothing distinguishes them ({found.columns} attributes tested)."
    assert found.columns == 2  # host and tokens; no task has enough samples, all have one attempt


def test_too_few_sessions_are_not_tested() -> None:
    chosen, rest = _groups()

    assert not differences(chosen[:7], rest).is_enough
    assert not differences(chosen, rest[:29]).is_enough
    assert differences(chosen[:8], rest[:30]).is_enough
    assert differences([], []).text.startswith("Too few to tell: 0 against 0;")


def test_what_they_were_chosen_by_is_left_out() -> None:
    chosen, rest = _groups()
    for session in chosen:
        session.tokens_out = 10_000
    phases = {row.span_id: {"generate": 5, "session": 9, "env": 1} for row in (*chosen, *rest)}

    found = differences(chosen, rest, excluded={"tokens", "generate"}, phase_ns=phases)

    assert found.rows == []
    assert [phase.name for phase in found.phases] == ["env"]


def test_a_value_needs_five_sessions_and_a_tenth() -> None:
    chosen, rest = _groups()
    for session in chosen[:4]:
        session.attrs = {"flag": "x"}
    for session in chosen[4:9]:
        session.attrs = {"flag": "y"}

    found = differences(chosen, rest)

    assert [(row.column, row.value) for row in found.rows] == [("attr.flag", "y")]


def test_columns_that_are_mostly_unique_are_not_tested() -> None:
    chosen, rest = _groups()
    for session in (*chosen, *rest):
        session.attrs = {"uid": f"u{session.span_id}", "list": [1]}

    assert differences(chosen, rest).columns == 2


def test_attributes_that_split_alike_fold_into_one() -> None:
    chosen, rest = _groups()
    for session in chosen:
        session.attrs = {"zone": "west", "is_spot": True, "depth": 9.0, "depth_2": 81}
    for session in rest:
        session.attrs = {"zone": "east", "is_spot": False, "depth": 1.5, "depth_2": 2}

    rows = differences(chosen, rest).rows

    folded = {f"{row.column} {row.value}": row.alike for row in rows}
    assert folded == {
        "attr.is_spot true": ["attr.zone west"],
        "attr.depth None": ["attr.depth_2"],
    }


def test_two_sides_of_one_split_fold_into_one() -> None:
    chosen, rest = _groups()
    for n, session in enumerate(chosen):
        session.attrs = {"lang": "c" if n < 18 else "py"}
    for n, session in enumerate(rest):
        session.attrs = {"lang": "c" if n < 24 else "py"}

    (row,) = differences(chosen, rest).rows

    assert (row.value, row.alike) == ("c", ["attr.lang py"])


def test_tools_and_environments_come_from_the_phases() -> None:
    chosen, rest = _groups()
    details = [(row.span_id, "toolcall", tool) for row in chosen for tool in ("browser", "shell")]
    details += [(row.span_id, "tool", "shell") for row in rest]

    (row,) = differences(chosen, rest, details=detail_labels(details)).rows

    assert (row.column, row.value, row.effect) == ("tool", "browser", 1.0)


def test_few_tasks_are_badged() -> None:
    chosen, rest = _groups()
    assert not differences(chosen, rest).is_few_tasks
    for n, session in enumerate(chosen):
        session.task_key = f"math/{n % 4}"
    assert differences(chosen, rest).is_few_tasks
    for session in chosen:
        session.task_key = None
    assert not differences(chosen, rest).is_few_tasks


def test_where_the_time_went_stands_apart() -> None:
    chosen, rest = _groups()
    phases = {row.span_id: {"toolcall": 30 * S, "generate": 2 * S} for row in chosen}
    phases.update({row.span_id: {"generate": S} for row in rest})

    found = differences(chosen, rest, phase_ns=phases)

    assert [(p.name, p.chosen_p50_ns, p.rest_p50_ns) for p in found.phases] == [
        ("toolcall", 30 * S, 0),
        ("generate", 2 * S, S),
    ]
    assert found.rows == []
