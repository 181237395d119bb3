"""Memory stays bounded, whatever the sink and the program do."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.support import PATIENCE_S, Lab

_BUFFER_MB = 8


def _measure(lab: Lab, source: str) -> dict[str, Any]:
    program = lab.start(source, _BUFFER_MB)
    out, err = program.communicate(timeout=2 * PATIENCE_S)
    assert program.returncode == 0, err
    print(out)  # noqa: T201  (a figure worth seeing)
    figures: dict[str, Any] = json.loads(out)
    return figures


def test_a_sink_that_hangs_does_not_make_the_program_grow(lab: Lab) -> None:
    figures = _measure(
        lab,
        """
        import json, os, sys, time
        import rollscope as rs
        from tests.integration.misbehaviour import RssWatch, StuckSink

        def record(number):
            for at in range(number):
                with rs.span("work", at=at, text="x" * 200):
                    pass
                if at % 500 == 0:
                    time.sleep(0.002)

        rs.init(sink=StuckSink(), buffer_mb=float(sys.argv[1]))
        watch = RssWatch()
        record(80_000)
        halfway = watch.growth_mb
        record(80_000)
        print(json.dumps({"halfway_mb": halfway, "growth_mb": watch.growth_mb}), flush=True)
        os._exit(0)
        """,
    )

    # Beside the bound: rows that wait for the writer, and what the allocator keeps in pieces.
    assert figures["growth_mb"] < _BUFFER_MB + 24
    assert figures["growth_mb"] - figures["halfway_mb"] < _BUFFER_MB


def test_threads_that_record_faster_than_can_be_encoded_lose_spans_and_not_memory(lab: Lab) -> None:
    figures = _measure(
        lab,
        """
        import json, os, sys, threading
        import rollscope as rs
        from tests.integration.misbehaviour import CountingSink, RssWatch

        def record():
            for at in range(150_000):
                with rs.span("work", at=at, text="some text"):
                    pass

        sink = CountingSink()
        rs.init(sink=sink, buffer_mb=float(sys.argv[1]))
        watch = RssWatch()
        threads = [threading.Thread(target=record) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rs.shutdown()
        print(json.dumps(
            {"growth_mb": watch.growth_mb, "spans": sink.spans, "drops": sink.drops}
        ))
        """,
    )

    # 1,200,000 rows that wait take 600 MB; a slow machine leaves the writer less time.
    assert figures["growth_mb"] < 300
    assert figures["spans"] + figures["drops"].get("span.overload", 0) == 1_200_000


def test_metrics_that_come_faster_than_they_can_be_added_up_are_counted_as_lost(lab: Lab) -> None:
    figures = _measure(
        lab,
        """
        import json, os, sys
        import rollscope as rs
        from tests.integration.misbehaviour import CountingSink, RssWatch

        sink = CountingSink()
        rs.init(sink=sink, buffer_mb=float(sys.argv[1]))
        watch = RssWatch()
        for _ in range(700_000):
            rs.count("calls", worker="t0")
        rs.shutdown()
        print(json.dumps(
            {"growth_mb": watch.growth_mb, "calls": sink.counted, "drops": sink.drops}
        ))
        """,
    )

    # 700,000 calls that wait take 200 MB.
    assert figures["growth_mb"] < 130
    assert figures["calls"] + figures["drops"].get("metric.overload", 0) == 700_000


def test_a_program_that_starts_task_after_task_does_not_grow(lab: Lab) -> None:
    # Each task inherits its creator's context, and with it the creator's span.
    figures = _measure(
        lab,
        """
        import asyncio, gc, json, sys
        import rollscope as rs
        from tests.integration.misbehaviour import CountingSink, RssWatch

        async def chain(left, done):
            with rs.task("item"), rs.session(), rs.phase("generate", text="x" * 1000):
                await asyncio.sleep(0)
                if left:
                    asyncio.create_task(chain(left - 1, done))
                else:
                    done.set()

        async def main():
            for number in (2000, 20_000):
                done = asyncio.Event()
                asyncio.create_task(chain(number, done))
                await done.wait()
                if number == 2000:
                    gc.collect()
                    watch = RssWatch()
            print(json.dumps({"growth_mb": watch.growth_mb}))

        rs.init(sink=CountingSink(), buffer_mb=float(sys.argv[1]))
        asyncio.run(main())
        """,
    )

    assert figures["growth_mb"] < 20  # 20,000 live chains would take twice that
