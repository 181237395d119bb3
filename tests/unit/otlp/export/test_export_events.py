"""Events that belong to no span are exported once, however the run grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollscope.instrument.tracer import Tracer
from rollscope.otlp import jsonform
from rollscope.otlp.export.exporter import Exporter, Wanted
from rollscope.otlp.export.filetarget import FileTarget
from rollscope.otlp.export.position import Position
from rollscope.otlp.export.sending import Sending
from rollscope.otlp.export.settings import ExportSettings
from rollscope.store.embedded import RunStore

if TYPE_CHECKING:
    from pathlib import Path


def test_an_event_without_a_span_is_sent_once_as_one_without_a_length(tmp_path: Path) -> None:
    tracer = Tracer(run="run", dir=str(tmp_path))
    tracer.event("first", version=1)
    with tracer.span("work"):
        tracer.event("inside")
    tracer.flush()
    file = tmp_path / "out.jsonl"
    target = FileTarget(str(file))
    with RunStore(tmp_path / "run") as store:
        exporter = Exporter(
            store,
            Sending(target, 1.0),
            ExportSettings(endpoints={}),
            Position(str(store.path), "file", None),
            Wanted(),
            as_json=True,
        )
        exporter.export()
        tracer.event("second")
        tracer.flush()
        exporter.look_again()
        exporter.look_again()
    target.close()
    tracer.shutdown()
    lines = file.read_bytes().splitlines()
    forms = [form for line in lines for form in jsonform.read_traces(line).spans]
    assert sorted(form.name for form in forms) == ["first", "second", "work"]
    events = [form for form in forms if form.attrs["rollscope.kind"] == "event"]
    assert [form.end_ns - form.start_ns for form in events] == [0, 0]
    (work,) = (form for form in forms if form.name == "work")
    assert [event.name for event in work.events] == ["inside"]
