"""Every number that commands print about sessions, errors and runs stands on the page."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser.figures import Figure, agree, apart, figures, of_day_s, only
from tests.browser.looking import Look, assert_same_cells

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.conftest import OpenPage, Print
    from tests.browser.paper import Paper

FILTER = "ran>9s"


def test_the_list_of_sessions(printing: Print, look: Look) -> None:
    paper = printing("sessions", "--scope", "all", "--sort=-ran", "--limit", "12")
    look.go("sessions?sort=-ran")
    shown = look.table("Sessions")
    rows = paper.table("session", "step")
    assert len(rows) == 12
    for row, there in zip(rows, shown, strict=False):
        assert there["link"].endswith(row["id"])
        columns = {
            **{"step": "Step", "waited": "Waited", "ran": "Ran", "reward": "Reward"},
            **{"tokens": "Tokens out", "try": "Try"},
        }
        assert_same_cells({**row, "version": ""}, there, columns)
        assert row["version"] == there["Versions"].replace("\u2013", "-")
        assert (row["start"], row["host"]) == (there["Started"], there["Host"])
    assert paper.take(r"^(\d+ sessions) in the run")[1] in look.text("list")
    listed = Counter(re.findall(r"[a-z]+", row["Outcome"])[0] for row in shown[: len(rows)])
    said = re.findall(r"(\d+) ([a-z]+)(?=[,.])", paper.take(r"^The 12 listed: .*? --limit")[0])
    assert {outcome: int(count) for count, outcome in said} == listed
    assert paper.left() == []


def test_one_session(printing: Print, look: Look) -> None:
    look.go("sessions?sort=-ran")
    session = look.table("Sessions")[0]["link"][-16:]
    paper = printing("show", session)
    look.go(f"session/{session}?tab=attributes")
    head, facts = look.lines(".session-head")[0], look.text("tabs")
    ran = paper.take(r" (ran for .*)")[1]
    assert apart(ran, head) == []
    start, waited, step = paper.take(r"^Started (\S+), (.*) for a slot.*for step (\d+),").groups()
    assert f"start\n{start}" in re.sub(r"\n+", "\n", facts)
    assert apart(waited, head) == []
    assert f"step {step}" in head
    more = paper.take(r"^(.* tokens out, \d+ turns), version (\d+)-(\d+) \((.*)\); id (\w+)")
    assert apart(f"{more[1]} {more[2]} {more[3]} {more[4]}", facts) == []
    assert more[5] == session

    assert_same_phases(paper, look)
    assert_same_spans(paper, look, session)
    look.go(f"session/{session}?tab=attributes")
    facts = look.text("tabs")
    for name, value in re.findall(r"(\w+)=([\d.]+)", paper.take(r"^  \w+=.*")[0]):
        assert apart(value, _fact(facts, name)) == [], (name, facts)

    siblings = {one.split()[0]: one for one in look.lines(".siblings li")}
    rows = paper.table("sibling", "ran")
    assert str(len(siblings)) == paper.take(r"^Its group: (\d+) sessions")[1] == str(len(rows))
    for row in rows:
        there = siblings["#" + row["sibling"].rpartition("#")[2]]
        assert apart(f"{row['ran']} {row['reward']}", there) == [], there
    assert paper.left() == []


def assert_same_phases(paper: Paper, look: Look) -> None:
    """See that a session's time went where the page says, as often."""
    shares = look.shares("Time by phase")
    hints = dict(
        look.read("""() => [...document.querySelectorAll(".session-head .split-list li")]
            .map((one) => [one.innerText.trim().split(" ")[0], one.title])""")
    )
    rows = paper.take_all(
        r"^  (\S+)( \(in no phase\)| whole session)? +(.*?%) *\S*?(?: +(\d+) x)?$"
    )
    assert len(rows) > 3
    for row in rows:
        if row[2] == " whole session":
            continue
        assert apart(row[3], shares[row[1]]) == [], (row[0], shares)
        assert row[4] is None or hints[row[1]].startswith(f"{row[4]} of them")
    whole = next(row for row in rows if row[2] == " whole session")
    assert apart(whole[3].replace("100 %", ""), look.lines(".session-head")[0]) == []


def assert_same_spans(paper: Paper, look: Look, session: str) -> None:
    """See that its spans began and took as long as on the page, with the same attributes."""
    line = figures(paper.take(r"^What it did, on a line of (.*)")[1])
    bars = look.read("""() => [...document.querySelectorAll("[data-panel=waterfall] li")]
        .filter((one) => one.dataset.span).map((one) => ({
            id: one.dataset.span,
            name: one.querySelector("button").innerText.trim(),
            took: one.querySelector(".waterfall-number").innerText,
            left: parseFloat(one.querySelector(".waterfall-track i").style.left) / 100,
        }))""")
    head = figures(re.sub(r".*(?=waited)", "", look.lines(".session-head")[0], flags=re.DOTALL))
    waited, ran = ((one.low + one.high) / 2 for one in head[:2])
    assert agree(line[0], head[1])
    rows = paper.table("span", "at")
    assert len(rows) == len(bars)
    for row, bar in zip(rows, bars, strict=True):
        assert row["span"] == bar["name"]
        assert apart(row["took"], bar["took"]) == []
        since, slack = bar["left"] * (waited + ran) - waited, ran / 1000
        assert agree(figures(row["at"])[0], Figure("time", since - slack, since + slack)), bar
        if said := re.findall(r"(\w+)=([\d.]+)", row.get("attributes", "")):
            look.go(f"session/{session}?tab=attributes&sel={bar['id']}")
            facts = look.text("tabs")
            for name, value in said:
                assert apart(value, _fact(facts, name)) == [], (name, facts)


def _fact(facts: str, name: str) -> str:
    """Read a fact of the session or span by its name."""
    match = re.search(rf"\n{name.replace('_', ' ')}\n+(\S+)", facts)
    assert match, (name, facts)
    return match[1]


def assert_same_lengths(rows: list[dict[str, str]], look: Look, sides: tuple[str, str]) -> None:
    """See that two sides compare alike, phase by phase."""
    shown = {row["Phase"]: row for row in look.table("Phases of both sides")}
    assert len(rows) == len(shown) > 3
    for row in rows:
        columns = {"change": "Difference[0]", "95 % interval": "Difference", "effect": "Effect"}
        for place, side in enumerate(sides):
            for rank in ("n", "p50", "p95", "p99"):
                columns[f"{side} {rank}"] = f"{rank} A → B[{place}]"
        assert_same_cells(row, shown[row[""]], columns)


def test_two_stretches_of_steps(printing: Print, look: Look, numbered_run: Path) -> None:
    paper = printing("compare", f"{numbered_run}@1-2", about=f"{numbered_run}@0")
    look.go("compare?sa=0&sb=1-2")
    assert_same_lengths(paper.table("A n", "A p50"), look, ("A", "B"))
    sizes = paper.take(r"^A is step 0 \((\d+) .*, B is step 1-2 \((\d+) ").groups()
    assert f"sessions of A: {sizes[0]}, B: {sizes[1]}" in look.text("phases")
    paper.take("^How long sessions")
    assert paper.left() == []


def test_a_step_compares_with_the_one_before_it_as_does_who_names_none(look: Look) -> None:
    look.go("step/2")
    look.page.get_by_role("link", name="Compare with 1").click()
    hint = look.page.locator("[data-panel=phases] .panel-hint")
    expect(hint).to_contain_text("sessions of A: 25, B: 48")
    named = look.page.url
    look.go("compare")
    expect(hint).to_contain_text("sessions of A: 25, B: 48")
    assert look.page.url == named


def test_some_sessions_against_the_others(printing: Print, look: Look) -> None:
    paper = printing("compare", "--filter", FILTER)
    look.go(f"compare?fa={FILTER}")
    panel = look.text("what-is-different-about-these")
    chosen, everything, most = paper.take(r"^(\d+) of (\d+) .*?'\. (Most different: .*)").groups()
    rest = int(everything) - int(chosen)
    assert f"{chosen} sessions against {rest}" in panel
    assert most.partition(": ")[2].rstrip(".") in panel
    assert paper.take(r"\((\d+ attributes tested)\)")[1] in panel

    items = look.lines("ol.differences li")
    rows = paper.table("attribute", "value")
    assert len(rows) == len(items) > 1
    for row, item in zip(rows, items, strict=True):
        values = " ".join(row[head] for head in ("these", "the rest", "n", "effect", "q"))
        assert item.startswith(row["attribute"])
        assert apart(values.replace(" /", ""), item.replace(" /", "")) == [], (row, item)
    assert_same_lengths(paper.table("rest n", "rest p50"), look, ("rest", "these"))
    paper.take("^How long sessions")
    assert paper.left() == []


def test_what_hangs(printing: Print, look: Look) -> None:
    paper = printing("stuck")
    look.go("now")
    paper.take("^Nothing is open")
    assert "Nothing is open" in look.text("stuck-and-slow")
    paper.take("^The run was last heard of")  # the page says `ended`, not since when
    assert paper.left() == []


def test_the_health_of_a_run(printing: Print, look: Look) -> None:
    paper = printing("doctor", "--quick")
    look.go("health")
    findings = look.text("findings")
    for sentence in paper.take_all(r"^(?:warning|note|error|  ->):? (.*)"):
        assert sentence[1].replace("`", "") in findings
    processes = look.table("Processes")
    # How much of the disk is free is of the moment.
    said = paper.take(r"^(\d+) processes, (\d+) alive; (.*) spans; .* free on disk")
    assert said[1] == str(len(processes))
    assert said[2] == str(sum(row["Status"] != "ended" for row in processes))
    assert int(said[3].replace(",", "")) == sum(int(row["Spans"]) for row in processes)
    paper.take("/same$")
    assert paper.left() == []


def test_the_list_of_runs(
    printing: Print, numbered_run: Path, numbered_site: str, open_page: OpenPage
) -> None:
    paper = printing("runs", about=str(numbered_run.parent))
    page = open_page(f"{numbered_site}#/small/health")
    look = Look(page, numbered_site, "same")
    look.go("sessions")
    facets = look.text("facets")
    page.goto(numbered_site)  # which knows what is in a run once somebody has looked at it
    unknown = page.get_by_role("table", name="Runs").get_by_role("cell", name="\u2013")
    expect(unknown).to_have_count(0)
    shown = {row["Run"]: row for row in look.table("Runs")}
    rows = paper.table("run", "started")
    assert len(rows) == len(shown) == 2
    for row in rows:
        columns = {"steps": "Steps", "spans": "Spans", "size": "Size"}
        # Started and idle are of the wall clock; how many live stands on the run's own page.
        rest = dict.fromkeys(("started", "alive", "sessions", "idle"))
        assert_same_cells(row, shown[row["run"]], {**columns, **rest})
        if row["run"] == "same":
            assert f"{row['sessions']} of {row['sessions']} sessions" in facets
    assert paper.left() == []


def test_errors(printing: Print, look: Look) -> None:
    paper = printing("phases")
    look.go("now")
    shown = {(row["Kind"], row["Phase"]): row for row in look.table("Errors")}
    rows = paper.table("error", "in")
    assert len(rows) == len(shown) > 1
    ends = []
    for row in rows:
        there = shown[row["error"], row["in"]]
        assert_same_cells(row, there, {"count": "Count", "step": None})
        ends.append(of_day_s(row["first"]) + only(there["First"]).low / 1e9)
        ends.append(of_day_s(row["last"]) + only(there["Last"]).low / 1e9)
    assert max(ends) - min(ends) <= 2  # a command says the time of day, the page how long before
    everything, most = paper.take(r"^(\d+) spans ended with an error.* \((\d+)\)").groups()
    counts = [int(row["Count"]) for row in shown.values()]
    assert [int(everything), int(most)] == [sum(counts), max(counts)]

    look.go("steps")
    look.page.locator("[data-panel=errors-by-step]").get_by_role("button", name="Table").click()
    strips = look.table("Errors by step")
    for row in rows:
        by_step = {one["Step"]: int(one[f"{row['in']}: {row['error']}"]) for one in strips}
        assert sum(by_step.values()) == int(row["count"])
        assert by_step[row["step"]] > 0

    # What it says of phases is compared step by step.
    assert len(paper.table("phase", "count")) == 3
    paper.take("takes most")
    paper.take_all("is mostly queueing")
    assert paper.left() == []
