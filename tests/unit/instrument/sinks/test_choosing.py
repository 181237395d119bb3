from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.config import resolve
from rollscope.errors import MissingExtra
from rollscope.instrument.sinks import NullSink
from rollscope.instrument.sinks.choosing import make_sink
from rollscope.instrument.sinks.file import FileSink
from rollscope.instrument.sinks.http import HttpSink
from rollscope.instrument.sinks.memory import MemorySink

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "t0ken"  # noqa: S105  (nobody's)


def chosen(**settings: Any) -> object:
    return make_sink(resolve(settings, {}))


def test_names_stand_for_sinks() -> None:
    assert isinstance(chosen(), FileSink)
    assert isinstance(chosen(sink="none"), NullSink)
    sink = MemorySink()
    assert chosen(sink=sink) is sink


def test_an_address_stands_for_the_server_there() -> None:
    sink = chosen(sink="http://head:7077/?token=secret", token=TOKEN)
    assert isinstance(sink, HttpSink)
    assert sink.address == "http://head:7077"


def test_the_sink_of_ray_is_found_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    module = ModuleType("rollscope.rayhub.sink")
    module.RaySink = lambda *args, **named: made.append((args, named))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rollscope.rayhub", ModuleType("rollscope.rayhub"))
    monkeypatch.setitem(sys.modules, "rollscope.rayhub.sink", module)
    chosen(sink="ray", spool_dir=str(tmp_path), spool_mb=5)
    assert made == [(("ray",), {"spool_dir": str(tmp_path), "spool_mb": 5.0})]


def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rollscope.rayhub.sink", None)
    with pytest.raises(MissingExtra, match=r"pip install 'rollscope\[ray\]'"):
        chosen(sink="ray")


def test_how_to_reach_a_server_is_handed_on_to_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rs.init(
        sink="http://127.0.0.1:1", token=TOKEN, spool_dir="spools", ca_file="ca.pem", spool_mb=7
    )
    child = rs.child_env({})
    rs.shutdown()
    assert child["ROLLSCOPE_SINK"] == "http://127.0.0.1:1"
    assert child["ROLLSCOPE_TOKEN"] == TOKEN
    assert child["ROLLSCOPE_SPOOL_DIR"] == str(tmp_path / "spools")
    assert child["ROLLSCOPE_CA_FILE"] == str(tmp_path / "ca.pem")
    assert child["ROLLSCOPE_SPOOL_MB"] == "7.0"
