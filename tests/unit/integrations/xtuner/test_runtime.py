"""Configuration of both designs, variables for children, and the ends of a process."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rollscope.integrations import xtuner
from rollscope.integrations.xtuner.config import read_options
from rollscope.model.kinds import Kind
from rollscope.store.fold import read_run


@pytest.mark.parametrize(
    ("fields", "classic"),
    [
        ({}, "otlp"),
        ({"service_name": "s"}, "otlp"),
        ({"viewer_port": 0}, "producer"),
        ({"max_events": 5}, "producer"),
        ({"max_events": 5, "classic": "none"}, "none"),
    ],
)
def test_the_fields_tell_which_file_is_written(fields: dict[str, Any], classic: str) -> None:
    assert read_options(fields).classic == classic


def test_unknown_fields_and_contradictions_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown: nonsense"):
        xtuner.TraceConfig(nonsense=1)
    with pytest.raises(ValueError, match="mean the same"):
        read_options({"viewer_port": 1, "xtuner_viewer_port": 2})
    with pytest.raises(ValueError, match="viewer_port cannot be"):
        xtuner.TraceConfig(viewer_port=70_000)
    assert read_options({"viewer_port": 2, "xtuner_viewer_port": 2}).viewer_port == 2


def test_an_object_of_the_original_is_read_by_attribute(tmp_path: Path) -> None:
    original = SimpleNamespace(
        enabled=True,
        output_dir=tmp_path,
        service_name="mine",
        xtuner_viewer_enabled=False,
        xtuner_viewer_port=18080,
        enable_rollout_trace=True,
        model_fields_set={"enabled", "output_dir", "service_name", "enable_rollout_trace"},
    )
    options = read_options(original)
    assert (options.classic, options.service_name, options.viewer_port) == ("otlp", "mine", 18080)
    assert options.traces_rollouts
    assert options.viewer  # nobody has said no


def test_the_viewer_is_off_when_it_was_told_so() -> None:
    assert not read_options({"xtuner_viewer_enabled": False}).viewer
    assert not read_options({"viewer_enabled": False}).viewer


def test_the_runtime_says_where_things_are(site: Any) -> None:
    runtime = site.otel(service_name="svc")
    assert runtime.mode == "driver"
    assert runtime.run_dir == site.folder / runtime.run_id
    assert runtime.trace_jsonl_path == runtime.run_dir / "traces" / "traces.jsonl"
    assert runtime.trace_viewer_url is None
    assert xtuner.current_trace_runtime() is runtime
    assert xtuner.configure_trace({"enabled": False}).mode == "disabled"
    assert xtuner.current_trace_runtime() is None


@pytest.mark.parametrize("classic", ["otlp", "producer"])
def test_variables_make_a_child_join_the_run(
    site: Any, new_state: Any, monkeypatch: pytest.MonkeyPatch, classic: str
) -> None:
    from rollscope.integrations.xtuner import runtime as module

    parent = site.configure(classic=classic)
    run_dir, path = parent.run_dir, parent.trace_jsonl_path
    merged = xtuner.merge_trace_runtime_env({"env_vars": {"A": "1"}})
    variables = merged["env_vars"]
    assert variables["A"] == "1"
    assert not variables.keys() & os.environ.keys()
    with xtuner.trace_span(new_state(), "in the parent"):
        pass
    xtuner.close_trace()

    for name, item in variables.items():
        monkeypatch.setenv(name, item)
    monkeypatch.setattr(module, "_active", module._UNDECIDED)
    with xtuner.trace_span(new_state(), "in the child"):
        pass
    child = xtuner.current_trace_runtime()
    assert child is not None
    assert (child.mode, child.run_dir, child.trace_jsonl_path) == ("inherited", run_dir, path)
    xtuner.close_trace()
    assert {span.name for span in read_run(run_dir).of_kind(Kind.SPAN)} == {
        "in the parent",
        "in the child",
    }


def test_a_failing_disk_delays_and_does_not_lose(site: Any, new_state: Any, tmp_path: Path) -> None:
    runtime = site.configure()
    site.folder.mkdir(exist_ok=True)
    hidden = tmp_path / "hidden"
    site.folder.rename(hidden)
    site.folder.write_text("in the way")
    with xtuner.trace_span(new_state(), "work"):
        pass
    assert not runtime._writer.flush(0.3)
    site.folder.unlink()
    hidden.rename(site.folder)
    assert len(site.events()) == 2


def test_install_puts_us_in_the_place_of_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "xtuner.v1.rl.trace"
    for part in ("", ".api", ".runtime", ".rollout_api"):
        monkeypatch.setitem(sys.modules, name + part, SimpleNamespace(__name__=name + part))
    with pytest.raises(RuntimeError, match="imported already"):
        xtuner.install()
    for part in ("", ".api", ".runtime", ".rollout_api"):
        monkeypatch.delitem(sys.modules, name + part)
    xtuner.install()
    assert sys.modules[name] is xtuner
    for part in ("", ".api", ".runtime", ".rollout_api"):
        sys.modules.pop(name + part)


def test_every_public_name_is_there() -> None:
    assert sorted(xtuner.__all__) == xtuner.__all__
    assert all(hasattr(xtuner, name) for name in xtuner.__all__)
