"""Samples of other tools, imported, exported and imported again: the same answers."""

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from rollscope.answers.phases import phases
from rollscope.answers.scope import StepScope
from rollscope.answers.sessions import list_sessions
from rollscope.answers.steps import steps
from rollscope.cli.main import main
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

_FIXTURES: Final = Path(__file__).parents[1] / "fixtures"
_SAMPLES: Final = {
    "areal/session_tracer": 64,
    "areal/perf_tracer": 0,
    "xtuner_otlp": 8,
    "xtuner_producer": 6,
    "rl_insight/hub_events.jsonl": 1,
    "rl_insight/otlp_protobuf_json.jsonl": 2,
    "rl_insight/metrics.txt": 2,
    "verifiers": 4,
    "slime": 4,
    "chrome/ray_timeline.json": 0,
    "chrome/rlinf_trace.jsonl": 0,
    "quirks/areal_*.jsonl": 9,
    "quirks/otlp_quirks.jsonl": 1,
}
"""Samples, and how many sessions each holds."""
_EXPORTS: Final = {
    "jsonl": ("--format", "jsonl"),
    "otlp": ("--format", "otlp", "--pending", "--metrics"),
    "chrome": ("--format", "chrome"),
}
_NOW_NS: Final = 2_000_000_000_000_000_000
"""When open spans are looked at: later than any sample, and the same for all copies of a run."""
_SESSION: Final = (
    "task_key", "family", "group", "sample", "attempt", "status", "outcome", "reason", "step",
    "consumed_step", "version_start", "version_end", "start_ns", "end_ns", "waited_ns", "reward",
    "tokens_in", "tokens_out", "turns",
)  # fmt: skip


def _answers(run: Path) -> dict[str, Any]:
    """Ask what people ask."""
    with RunStore(run, now_ns=_NOW_NS) as store:
        assert not store.problems
        listed = list_sessions(store, StepScope(), limit=1000)
        told = [
            {name: getattr(line.row, name) for name in _SESSION}
            | {"ran_ns": line.ran_ns, "phases": line.phases, "other_ns": line.other_ns}
            for line in listed.sessions
        ]
        by_phase = phases(store, StepScope())
        by_step = [line.summary for line in steps(store).steps]
        return {
            "sessions": sorted(told, key=repr),
            "phases": sorted(map(repr, msgspec.to_builtins(by_phase.lines))),
            "errors": sorted((one.kind, one.name, one.count) for one in by_phase.errors),
            "steps": msgspec.to_builtins(by_step),
        }


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Import each sample once, and give the run with its answers."""
    kept: dict[str, tuple[Path, dict[str, Any]]] = {}

    def give(sample: str) -> tuple[Path, dict[str, Any]]:
        if sample not in kept:
            run = tmp_path_factory.mktemp("samples") / "run"
            import_run([str(_FIXTURES / sample)], run)
            kept[sample] = run, _answers(run)
        return kept[sample]

    return give


@pytest.mark.parametrize("sample", _SAMPLES)
@pytest.mark.parametrize("way", _EXPORTS)
def test_a_sample_answers_the_same_after_it_went_out_and_came_back(
    imported: Any, tmp_path: Path, sample: str, way: str
) -> None:
    run, answers = imported(sample)
    assert len(answers["sessions"]) == _SAMPLES[sample]
    out = tmp_path / ("out.json" if way == "chrome" else "out.jsonl")
    assert main(["export", str(run), *_EXPORTS[way], "-o", str(out)]) == 0
    report = import_run([out], tmp_path / "run")
    assert report.files[0].set_aside == {}
    assert _answers(tmp_path / "run") == answers


def test_sessions_of_areal_answer_the_same_after_they_went_home(
    imported: Any, tmp_path: Path
) -> None:
    run, answers = imported("areal/session_tracer")
    out = tmp_path / "out"
    assert main(["export", str(run), "--format", "areal", "--strict", "-o", str(out)]) == 0
    import_run([out], tmp_path / "run")
    assert _answers(tmp_path / "run") == answers
