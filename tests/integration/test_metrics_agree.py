"""What `/metrics` says of a live run is what the commands say of it, each from its own process."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rollscope.analysis.stuck import ALARMS
from tests.integration.support import PATIENCE_S
from tests.integration.test_server_process import start_view

if TYPE_CHECKING:
    from tests.integration.support import Lab

Sample = tuple[dict[str, str], float]

_PROGRAM = """
import asyncio
import sys
import rollscope as rs

async def roll_out(step, number):
    # Of each step's sessions, some were begun with the weights before.
    async with rs.task("swe/%d" % number, step=step):
        async with rs.session(sample=0, version=max(step - number % 3, 0)) as session:
            with rs.phase("generate", tokens=10):
                await asyncio.sleep(0.01 * (number % 8))
            if number % 5 == 0:
                session.finish("rejected", reason="equal_rewards")
            else:
                session.finish("accepted", reward=1.0)
                return session.ref

async def hang(number, phase, **limits):
    async with rs.task("hangs/%d" % number), rs.session(sample=0, **limits):
        with rs.phase(phase):
            await asyncio.Event().wait()

async def main():
    for step in range(3):
        with rs.step(step):
            refs = await asyncio.gather(*(roll_out(step, 8 * step + n) for n in range(8)))
            for ref in filter(None, refs):
                rs.annotate(ref, consumed_step=step)
        rs.event("weights.published", version=step + 1)
    hanging = [asyncio.create_task(hang(n, "toolcall", deadline_s=0.01)) for n in range(2)]
    hanging += [asyncio.create_task(hang(n, "plan")) for n in range(2, 5)]
    await asyncio.sleep(0.05)
    rs.flush()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)

rs.init()
asyncio.run(main())
"""


def ask_command(lab: Lab, *words: object) -> Any:
    """Give what a command answers as JSON."""
    done = subprocess.run(
        lab.command(*words, lab.run, "--json"),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def scrape(address: str) -> dict[str, list[Sample]]:
    """Give the samples that a server shows, by name."""
    url = address.partition("?")[0] + "metrics"
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310  (http only)
        text = answer.read().decode()
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def by_label(samples: list[Sample], label: str) -> dict[str, float]:
    """Add samples up by one of their labels, those that are 0 left out."""
    sums = Counter[str]()
    for labels, value in samples:
        sums[labels[label]] += value  # type: ignore[assignment]  # whole numbers here, as floats
    return {name: value for name, value in sums.items() if value}


def test_metrics_and_commands_agree_about_a_live_run(lab: Lab) -> None:
    program = lab.start(_PROGRAM)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    process, address = start_view(lab, "--dir", lab.run.parent)
    shown = scrape(address)
    process.kill()
    process.wait(PATIENCE_S)

    stuck = ask_command(lab, "stuck")
    open_now = Counter(row["name"] for row in stuck["rows"])
    alarms = Counter(row["name"] for row in stuck["rows"] if row["band"] in ALARMS)
    assert by_label(shown["rollscope_sessions_in_flight"], "phase") == open_now
    assert by_label(shown["rollscope_stuck_sessions"], "phase") == alarms
    assert (stuck["open_sessions"], stuck["alarms"]) == (5, 2)
    assert (open_now, alarms) == ({"toolcall": 2, "plan": 3}, {"toolcall": 2})

    sessions = ask_command(lab, "sessions", "--limit", 100)["sessions"]
    outcomes = Counter(one["row"]["outcome"] for one in sessions if one["row"]["outcome"])
    finished = shown["rollscope_sessions_finished_total"]
    assert by_label(finished, "outcome") == outcomes == {"accepted": 19, "rejected": 5}

    lags = [one["lag"] for one in sessions if one["row"]["consumed_step"] is not None]
    assert shown["rollscope_staleness_versions_count"][0][1] == len(lags) == 19
    assert shown["rollscope_staleness_versions_sum"][0][1] == sum(lags) > 0

    last = ask_command(lab, "steps")["steps"][-1]["summary"]
    assert shown["rollscope_step"][0][1] == last["step"] == 2
    tail = last["bubble_ns"] / last["slot_ns"]
    assert shown["rollscope_tail_ratio"][0][1] == pytest.approx(tail)
    assert 0 < tail < 1
