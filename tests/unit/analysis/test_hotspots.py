"""Where the time of all sessions goes."""

from rollscope.analysis.hotspots import Footer, Hotspots, PathTotal, hotspots


def _total(
    path: str,
    total_ns: int,
    covered_ns: int = 0,
    group: str | None = None,
    parent_path: str | None = None,
) -> PathTotal:
    above = path.rpartition(" / ")[0] if parent_path is None else parent_path
    return PathTotal(
        path=path,
        parent_path=above or None,
        group=group,
        count=4,
        total_ns=total_ns,
        covered_ns=covered_ns,
        p50_ns=total_ns // 4,
        max_ns=total_ns,
        errors=1,
    )


def _closes(found: Hotspots) -> bool:
    footer = found.footer
    return (
        footer.children_ns + footer.other_ns == footer.session_ns + footer.overlap_ns
        and sum(row.self_ns for row in found.rows) == footer.children_ns + footer.other_ns
    )


def test_self_time_is_what_the_children_do_not_cover() -> None:
    found = hotspots(
        [
            _total("session", 100),
            _total("session / generate", 60, 60),
            _total("session / toolcall", 30, 30),
            _total("session / toolcall / http", 25, 25),
        ]
    )

    assert [(row.path, row.self_ns, row.share) for row in found.rows] == [
        ("session / generate", 60, 0.6),
        ("session / toolcall / http", 25, 0.25),
        ("session", 10, 0.1),
        ("session / toolcall", 5, 0.05),
    ]
    assert found.footer == Footer(session_ns=100, children_ns=90, other_ns=10, overlap_ns=0)
    assert found.rows[0].error_share == 0.25


def test_overlap_is_named_and_the_sum_closes() -> None:
    found = hotspots([_total("session", 100), _total("session / env", 150, 90)])

    assert found.footer == Footer(session_ns=100, children_ns=150, other_ns=10, overlap_ns=60)
    assert _closes(found)


def test_groups_of_sessions_stay_apart() -> None:
    found = hotspots(
        [
            _total("session", 100, group="host-1"),
            _total("session / env", 40, 40, group="host-1"),
            _total("session", 50, group="host-2"),
        ]
    )

    selves = {(row.group, row.path): row.self_ns for row in found.rows}
    assert selves == {
        ("host-1", "session"): 60,
        ("host-1", "session / env"): 40,
        ("host-2", "session"): 50,
    }
    assert _closes(found)


def test_a_row_of_a_tool_lies_below_the_session_that_has_none() -> None:
    found = hotspots(
        [
            _total("session", 100),
            _total("session / toolcall", 40, 40, group="browser"),
            _total("session / toolcall", 20, 20, group="shell"),
            _total("session / toolcall / http", 30, 30, group="browser"),
        ]
    )

    assert {(row.group, row.self_ns) for row in found.rows} == {
        (None, 40),
        ("browser", 10),
        ("browser", 30),
        ("shell", 20),
    }
    assert _closes(found)


def test_paths_of_one_name_are_taken_together() -> None:
    found = hotspots(
        [
            _total("session", 100),
            _total("session / http", 20, 20),
            _total("session / env", 50, 50),
            _total("session / env / http", 30, 30),
        ],
        by_name=True,
    )

    http = next(row for row in found.rows if row.path == "http")
    assert (http.count, http.total_ns, http.self_ns, http.errors) == (8, 50, 50, 2)
    assert (http.p50_ns, http.max_ns) == (None, 30)
    env = next(row for row in found.rows if row.path == "env")
    assert env.p50_ns == 12
    assert _closes(found)


def test_a_row_whose_parent_is_not_known_stands_as_a_session_does() -> None:
    found = hotspots([_total("orphan", 10, 10, parent_path="gone")])

    assert found.footer == Footer(session_ns=10, children_ns=0, other_ns=10, overlap_ns=0)


def test_nothing_recorded() -> None:
    found = hotspots([])

    assert (found.rows, found.footer) == ([], Footer(0, 0, 0, 0))
    assert hotspots([_total("session", 0)]).rows[0].share == 0.0
