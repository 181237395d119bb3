"""Every number that commands print about steps stands on the page, rounded its own way at most."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from tests.browser.figures import Figure, added, agree, apart, figures, of_day_s, only, ratio
from tests.browser.looking import Look, assert_same_cells

if TYPE_CHECKING:
    from tests.browser.conftest import Print
    from tests.browser.paper import Paper


WITHIN = "\u203a"
"""Stands between a phase and the span in it that the path went through."""


def assert_same_verdict(paper: Paper, look: Look) -> None:
    """See that the page gives the same verdict, word by word; it draws names without backticks."""
    shown = look.text("verdict")
    assert paper.take(r"^Step \d+ took .*")[0] in shown
    for finding in paper.take_all("^- (.*)"):
        for sentence in finding[1].split(" Try: "):
            assert sentence.replace("`", "") in shown


def assert_same_outcomes(line: str, look: Look) -> None:
    """See that the head of the step says as many sessions with each outcome."""
    head = look.lines(".step-head")[0]
    for part in line.strip().split(", "):
        assert re.search(rf"\b{part}", head), (part, head)


def test_the_list_of_steps(printing: Print, look: Look) -> None:
    paper = printing("steps")
    look.go("steps")
    shown = {row["Step"]: row for row in look.table("Steps")}
    rows = paper.table("step", "wall")
    assert len(rows) == len(shown) == 3
    for row in rows:
        there = shown[row["step"]]
        columns = {
            "step": "Step",
            "wall": "Wall",
            "vs median": "Change",
            "sessions": "Outcomes[1]",
            "outcomes": None,
            "tail": None,
            "wait": "Trainer waits",
            "waste": "Waste",
            "tok/s": "Tokens/s",
            "reward": "Reward",
            "because": None,
        }
        assert_same_cells(row, there, columns)
        assert row["lag"] == there["Lag p50 / max"].replace(" ", "")
        assert agree(only(row["tail"]), ratio(only(there["Tail"]), only(there["Wall"])))
    walls = sorted((only(one["Wall"]) for one in shown.values()), key=lambda one: one.low)
    least, most = paper.take(r"^wall, steps 0 to 2: \S+ +(.*) to (.*)").groups()
    assert agree(only(least), walls[0])
    assert agree(only(most), walls[-1])

    for row in rows:
        look.go(f"step/{row['step']}")
        assert_same_outcomes(row["outcomes"], look)
        findings = look.lines("[data-panel=verdict] li")
        for kind, share in re.findall(r"(\w+) (\d+ %)", row["because"]):
            assert any(kind in one and apart(share, one) == [] for one in findings), (kind, share)
    assert_same_verdict(paper, look)
    assert paper.left() == []


def test_the_story_of_a_step(printing: Print, look: Look) -> None:
    paper = printing("steps", "--step", "1")
    look.go("step/1")
    assert_same_verdict(paper, look)
    assert_same_path(paper, look)
    assert_same_waits(paper, look)
    assert_same_staleness(paper, look)

    for row, there in zip(paper.table("outcome", "reason"), look.table("Waste"), strict=True):
        columns = {"count": "n", "slot time": "Slot time", "share": "Share"}
        assert_same_cells(row, there, columns)
    thrown = paper.take(r"^  \d+ sessions? of \d+ that are over: .*")[0]
    assert apart(thrown, look.text("waste")) == []
    assert apart(paper.take(r"slowest trainer\. .*").string, look.text("weight-sync")) == []

    assert agree(*(only(one) for one in (paper.take(r"^Replicas: (.*)")[1], look.text("replicas"))))
    replicas = {row["Replica"]: row for row in look.table("Replicas")}
    starts = []
    for row in paper.table("replica", "sessions"):
        there = replicas[row["replica"]]
        columns = {"sessions": "Sessions", "busy": "Busy", "tok/s": "Tokens/s"}
        assert_same_cells(row, there, {**columns, "replica": "Replica"})
        starts.append(of_day_s(row["last end"]) - only(there["Last end"]).low / 1e9)
    assert max(starts) - min(starts) <= 1  # a command says the time of day, the page since when

    assert_same_sessions(paper, look)
    assert paper.left() == []


def assert_same_path(paper: Paper, look: Look) -> None:
    """See that the critical path is the same; a command joins neighbours of one phase."""
    hops = paper.take(r"^Critical path: .*inferred \((.*) hops\)")[1]
    assert apart(hops, look.lines(".path-foot")[0]) == []
    parts = look.read("""() => [...document.querySelectorAll("[data-panel=critical-path] ol li")]
        .map((one) => [...one.children].map((each) => each.innerText.trim())
            .concat(one.querySelector(".waterfall-track")?.getAttribute("href") ?? ""))""")
    names = [one[0].split("\n")[0].split(f" {WITHIN} ") for one in parts]
    phase = [f"{one[0]} {one[1].partition(' ')[2]}" if len(one) > 1 else one[0] for one in names]
    joined = [
        (name, [parts[place] for place in places])
        for name, places in groupby(range(len(parts)), key=phase.__getitem__)
    ]
    left = list(joined)
    first_s = _from_s(parts[0])
    for row in paper.table("at", "took"):
        name = row["on the path"].lstrip("~")
        same = (
            place
            for place, (shown, those) in enumerate(left)
            if shown == name and agree(only(row["took"]), added([only(one[2]) for one in those]))
        )
        _, those = left.pop(next(same))
        assert agree(only(row["share"]), added([only(one[3]) for one in those]))
        since_ns = (_from_s(those[0]) - first_s) * 1e9
        assert agree(only(row["at"]), Figure("time", since_ns - 1e6, since_ns + 1e6))
    rest, wall, shares = paper.take(r"parts, (.*) = (.*)\. In all: (.*)\.").groups()
    assert agree(only(rest), added([only(one[2]) for _, those in left for one in those]))
    assert agree(only(wall), added([only(one[2]) for one in parts]))

    legend = look.shares("Wall time by the critical path")
    inner = {one[0]: one[1].split()[0] for one in names if len(one) > 1}
    for name, share in re.findall(r"([\w.]+) (\d+ %)", shares):
        assert apart(share, legend[inner.get(name, name)]) == [], (name, legend)


def _from_s(part: list[str]) -> float:
    """Read where a part begins from its link to the timeline."""
    match = re.search(r"t=(-?[\d.]+)-", part[4])
    assert match, part
    return float(match[1])


def assert_same_waits(paper: Paper, look: Look) -> None:
    """See that trainer and slots spend their time alike, and that the tail costs the same."""
    for label, lines in (
        ("Trainer time", paper.take_all(r"█ train .*")),
        ("Slot time", paper.take_all(r"█ busy .*")),
    ):
        legend = look.shares(label)
        said = re.findall(r"[^\w\s] (.*?) (\d+ %|< 0.1 %)", lines[0][0])
        assert len(said) > 2
        for name, share in said:
            assert apart(share, legend[name]) == [], (name, legend)
    slots, assumed, idle = paper.take(r"^(\d+) slots \((\d+) .* idle for (.*) of").groups()
    look.page.get_by_text("Each of 3 pools").click()
    pools = [int(row["Slots"]) for row in look.table("Slots by pool")]
    assert slots == assumed == str(sum(pools))
    shares = look.shares("Slot time")
    assert agree(only(idle), added([figures(shares[name])[1] for name in shares if name != "busy"]))

    tail = look.text("tail")
    bubble, wall = paper.take(
        r"^  (\d.* s of slot time .*); (.* passed after 95 % had ended)"
    ).groups()
    assert bubble.partition(" stood")[0] in tail
    took, share = re.fullmatch(r"(.*) \((.*) of the wall\) passed .*", wall).groups()  # type: ignore[union-attr]
    passed = only(tail.partition("Table of sessions")[2])
    assert agree(only(took), passed)
    assert agree(only(share), ratio(passed, only(look.lines("[data-panel=who-waits] h3")[0])))
    slack = paper.take(r"^  Without the (\d+ sessions) that held it, (the step ends .*);").groups()
    assert apart(" ".join(slack), look.lines(".path-foot")[0]) == []


def assert_same_staleness(paper: Paper, look: Look) -> None:
    """See that lags are the same, the moment they are taken at and what adds to them."""
    shown = look.text("staleness")
    blocks = dict(
        re.findall(r"(At start|At end|When consumed) (n \d+.*?max \S+)", shown, re.DOTALL)
    )
    said = {"at start": "At start", "at end": "At end", "at consumption": "When consumed"}
    added_to = re.search(r"Added in flight: \d+ over (.*); in the queue: \d+ over (.*)\.", shown)
    assert added_to
    for row in paper.table("n", "p50"):
        name = row[""]
        place = "in the queue" not in name
        block = blocks[said[name]] if name in said else added_to[1 if place else 2]
        assert _ranks(f"{row['n']} p50 {row['p50']} · p95 {row['p95']} · max {row['max']}") == (
            _ranks(block)
        )
        for lag, count in re.findall(r"(\d+): (\d+)", row["sessions by lag"]):
            if name in said:
                assert re.search(rf"\n{lag}\s+{count}\s", block), (row, block)


def _ranks(block: str) -> list[str]:
    match = re.search(r"(?:n )?(\d+).*p50 (\d+) · p95 (\d+) · max (\d+)", block, re.DOTALL)
    assert match, block
    return list(match.groups())


def assert_same_sessions(paper: Paper, look: Look) -> None:
    """See that the sessions that held the tail, and the slowest, are the same."""
    slowest = {row["link"][-16:]: row for row in look.table("Ten slowest")}
    held = {row["link"][-16:]: row for row in look.table("Sessions that held the tail")}
    named = {"where": None}
    for row in paper.table("session", "ran"):
        assert_same_cells(row, held[row["id"]], {**named, "ran": "Ran", "charged": "Charged[0]"})
    for row in paper.table("session", "ran"):
        assert_same_cells(row, slowest[row["id"]], {**named, "ran": "Ran", "reward": "Reward"})
    count = paper.take(r"^Sessions: (\d+)")[1]
    assert_same_outcomes(f"{count} session", look)
    assert_same_outcomes(paper.take(r"^  \d+ accepted.*")[0], look)


def test_hotspots(printing: Print, look: Look) -> None:
    paper = printing("hotspots", "--scope", "1")
    look.go("step/1")
    shown = {row["Path"]: row for row in look.table("Hotspots by path")}
    rows = paper.table("path", "self")
    assert len(rows) == len(shown) > 3
    for row in rows:
        path = "session" if row["path"] == "(in no child)" else f"session / {row['path']}"
        columns = {
            **{"self": "Self", "share": "Share", "count": "n", "total": "Total", "max": "Max"},
            **{"p50": "p50", "p95": "p95", "p99": "p99", "errors": "Errors[0]"},
        }
        assert_same_cells(row, shown[path], columns)
    panel = look.text("hotspots")
    assert apart(paper.take(r"holds .* in step 1: (.*)").string.replace("step 1", ""), panel) == []
    assert apart(paper.take(r"^The sum: .*")[0], panel) == []
    assert paper.left() == []


def test_phases(printing: Print, look: Look) -> None:
    paper = printing("phases", "--scope", "1")
    look.go("step/1?by=name")
    shown = {row["Path"]: row for row in look.table("Hotspots by name")}
    rows = paper.table("phase", "count")
    whole = added([only(shown[row["phase"]]["Total"]) for row in rows])
    for row in rows:
        columns = {"count": "n", "total": "Total", "p50": "p50", "p95": "p95", "p99": "p99"}
        # How long phases queue is on the page for each service, and compared there.
        elsewhere = {"queue": None, "q50": None, "q95": None}
        assert_same_cells(row, shown[row["phase"]], {**columns, **elsewhere, "max": "Max"})
    name, share, ranks = paper.take(r"^(\w+) takes most: (.*) of all .* in step 1, (.*)").groups()
    assert agree(only(share), ratio(only(shown[name]["Total"]), whole))
    assert apart(ranks, " ".join(shown[name].values())) == []


def test_queues_of_services(printing: Print, look: Look) -> None:
    paper = printing("phases", "--scope", "1", "--by", "detail")
    look.go("step/1")
    shown = {row["Service"].strip(): row for row in look.table("Services")}
    compared = 0
    for row in paper.table("phase"):
        if there := shown.get(" ".join(filter(None, (row["phase"], row.get("detail", ""))))):
            columns = {"count": "Calls", "q50": "Queue p50", "q95": "Queue p95"}
            rest = dict.fromkeys(("total", "p50", "p95", "p99", "max", "queue"))
            assert_same_cells(row, there, {**rest, **columns})
            compared += 1
    assert compared == len(shown) > 2
