from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import pickle
import types
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.model.kinds import Category, Status
from rollscope.testing import Capture, FakeClock, SequentialIds, capture

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def run(clock: FakeClock) -> Iterator[Capture]:
    with capture(clock=clock, ids=SequentialIds()) as captured:
        yield captured


@pytest.fixture(params=["recording", "disabled"])
def either(request: pytest.FixtureRequest) -> Iterator[None]:
    """Behave the same whether anything is recorded or not."""
    with capture() if request.param == "recording" else contextlib.nullcontext():
        yield


# Functions


def test_each_call_of_a_function_is_a_span(run: Capture, clock: FakeClock) -> None:
    @rs.trace("trainer.update", category="compute", attrs=lambda a, b=2: {"sum": a + b})
    def update(a: int, b: int = 2) -> int:
        clock.advance(1)
        return a * b

    assert update(3) == 6
    assert update(3, b=5) == 15
    first, second = run.spans()
    assert (first.name, first.category) == ("trainer.update", Category.COMPUTE)
    assert (first.attrs, second.attrs) == ({"sum": 5}, {"sum": 8})
    assert (first.duration_s, second.duration_s) == (1.0, 1.0)


def test_a_function_is_called_by_its_qualified_name_unless_told_otherwise(run: Capture) -> None:
    @rs.trace
    def bare() -> None:
        pass

    @rs.trace()
    def called() -> None:
        pass

    @rs.trace(category="io")
    def sorted_in() -> None:
        pass

    bare()
    called()
    sorted_in()
    name = test_a_function_is_called_by_its_qualified_name_unless_told_otherwise.__qualname__
    assert [span.name for span in run.spans()] == [
        f"{name}.<locals>.bare",
        f"{name}.<locals>.called",
        f"{name}.<locals>.sorted_in",
    ]
    assert [span.category for span in run.spans()] == ["misc", "misc", "io"]


class Trainer:
    rank = 7

    @rs.trace("update", attrs=lambda self, batch: {"rank": self.rank, "size": len(batch)})
    def update(self, batch: list[int]) -> int:
        return len(batch)

    @staticmethod
    @rs.trace("static")
    def static(value: int) -> int:
        return value

    @classmethod
    @rs.trace("class")
    def of_class(cls, value: int) -> tuple[type, int]:
        return cls, value

    @property
    @rs.trace("property")
    def size(self) -> int:
        return 3


def test_methods_of_every_sort_are_traced(run: Capture) -> None:
    trainer = Trainer()
    assert trainer.update([1, 2]) == 2
    assert trainer.static(5) == Trainer.static(5) == 5
    assert trainer.of_class(5) == (Trainer, 5)
    assert trainer.size == 3
    names = [span.name for span in run.spans()]
    assert names == ["update", "static", "static", "class", "property"]
    assert run.named("update").attrs == {"rank": 7, "size": 2}


class OtherOrder:
    @rs.trace("static")
    @staticmethod
    def static(value: int) -> int:
        return value

    @rs.trace("class")
    @classmethod
    def of_class(cls, value: int) -> tuple[type, int]:
        return cls, value

    @rs.trace
    @staticmethod
    async def wait() -> bool:
        await asyncio.sleep(0)
        return bool(rs.current())


def test_static_and_class_methods_may_be_traced_from_outside_too(run: Capture) -> None:
    assert OtherOrder().static(5) == OtherOrder.static(5) == 5
    assert OtherOrder().of_class(5) == OtherOrder.of_class(5) == (OtherOrder, 5)
    assert asyncio.run(OtherOrder().wait())
    assert [span.name for span in run.spans()] == [
        *("static", "static", "class", "class"),
        "OtherOrder.wait",
    ]


def test_a_span_inside_a_traced_function_is_its_child(run: Capture) -> None:
    @rs.trace("outer")
    def outer() -> None:
        with rs.span("inner"):
            pass

    outer()
    assert run.named("inner").parent_id == run.named("outer").span_id


def test_an_error_of_a_function_passes_and_is_recorded(run: Capture) -> None:
    @rs.trace("fails")
    def fails() -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        fails()
    assert (run.named("fails").status, run.named("fails").reason) == (
        Status.ERROR,
        "ValueError: bad",
    )


def test_a_recursive_function_nests(run: Capture) -> None:
    @rs.trace("down")
    def down(depth: int) -> None:
        if depth:
            down(depth - 1)

    down(3)
    spans = run.spans()
    assert [span.parent_id for span in spans] == [None, *(span.span_id for span in spans[:-1])]


def test_callables_that_are_no_functions_are_traced(run: Capture) -> None:
    class Scorer:
        def __call__(self, value: int) -> int:
            return value + 1

    class AsyncScorer:
        async def __call__(self, value: int) -> int:
            await asyncio.sleep(0)
            assert rs.current()
            return value + 1

    class Inherits(AsyncScorer):
        pass

    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    assert rs.trace("scorer")(Scorer())(1) == 2
    assert rs.trace("builtin")(len)([1]) == 1
    assert rs.trace("partial")(functools.partial(max, 5))(7) == 7
    assert asyncio.run(rs.trace("async scorer")(AsyncScorer())(1)) == 2
    assert asyncio.run(rs.trace("inherits")(Inherits())(1)) == 2
    assert asyncio.run(rs.trace("async partial")(functools.partial(add, 5))(7)) == 12
    assert asyncio.run(rs.trace("bound")(AsyncScorer().__call__)(1)) == 2
    assert len(run.spans()) == 7
    assert rs.trace(Scorer())(1) == 2
    assert run.spans()[-1].name.endswith("Scorer")


def test_what_a_function_is_shows_through() -> None:
    def plain(a: int, b: str = "x") -> int:
        """Say so."""
        return a

    async def coroutine() -> None: ...

    def generator() -> Generator[int, None, None]:
        yield 1

    async def async_generator() -> AsyncGenerator[int, None]:
        yield 1

    plain.mark = 7  # type: ignore[attr-defined]  # functions take attributes
    traced: Any = rs.trace(plain)
    assert (traced.__name__, traced.__qualname__) == (plain.__name__, plain.__qualname__)
    assert (traced.__doc__, traced.__module__) == ("Say so.", __name__)
    assert inspect.signature(traced) == inspect.signature(plain)
    assert (traced.mark, traced.__wrapped__) == (7, plain)
    assert inspect.iscoroutinefunction(rs.trace(coroutine))
    assert inspect.isgeneratorfunction(rs.trace(generator))
    assert inspect.isasyncgenfunction(rs.trace(async_generator))
    assert not inspect.iscoroutinefunction(traced)


@rs.trace
def module_level(value: int) -> int:
    return value


def test_a_traced_function_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(module_level))(4) == 4  # noqa: S301  (our own bytes)


def test_a_function_traced_before_recording_started_is_recorded_afterwards() -> None:
    with capture() as first:
        module_level(1)
    module_level(2)
    with capture() as second:
        module_level(3)
        module_level(4)
        assert len(second.spans()) == 2
    assert len(first.sink.frames) > 0


# Attributes


@pytest.mark.parametrize(
    "attrs",
    [lambda value: 1 / 0, lambda: {}, lambda value: 7, lambda value: None, lambda value: [1]],
)
def test_attributes_that_cannot_be_had_are_told_and_the_call_goes_on(
    attrs: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")
    with capture() as run:

        @rs.trace("traced", attrs=attrs)
        def traced(value: int) -> int:
            return value

        assert [traced(1), traced(2)] == [1, 2]
        assert [span.attrs for span in run.spans()] == [{}, {}]
    assert len(caplog.messages) == 1
    assert "the attrs of traced" in caplog.messages[0]


def test_attributes_with_keys_that_are_no_text_can_be_read_back(run: Capture) -> None:
    odd: dict[Any, str] = {1: "a", None: "b", ("t",): "c"}

    @rs.trace("traced", attrs=lambda: odd)
    def traced() -> None: ...

    traced()
    assert set(run.named("traced").attrs.values()) == {"a", "b", "c"}


def test_the_map_that_gives_the_attributes_stays_the_hosts(run: Capture) -> None:
    shared = {"rank": 1}

    @rs.trace("traced", attrs=lambda: shared)
    def traced() -> None:
        rs.current().set(more=2)

    traced()
    assert shared == {"rank": 1}
    assert run.named("traced").attrs == {"rank": 1, "more": 2}


def test_attributes_are_not_asked_for_when_nothing_is_recorded() -> None:
    @rs.trace("traced", attrs=lambda: pytest.fail("asked"))
    def traced() -> int:
        return 5

    assert traced() == 5


# Coroutines


def test_a_coroutine_is_timed_from_its_first_step_to_its_end(
    run: Capture, clock: FakeClock
) -> None:
    @rs.trace("work")
    async def work(value: int) -> int:
        clock.advance(1)
        await asyncio.sleep(0)
        clock.advance(1)
        return value

    async def main() -> int:
        waiting = work(5)
        clock.advance(10)
        return await waiting

    assert asyncio.run(main()) == 5
    assert run.named("work").duration_s == 2.0


def test_a_cancelled_coroutine_is_recorded_as_such(run: Capture) -> None:
    @rs.trace("work")
    async def work() -> None:
        await asyncio.sleep(3600)

    async def main() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert run.named("work").status is Status.CANCELLED


def test_coroutines_at_once_do_not_mix(run: Capture) -> None:
    @rs.trace("work", attrs=lambda number: {"number": number})
    async def work(number: int) -> None:
        await asyncio.sleep(0)
        with rs.span(f"inner{number}"):
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(work(number) for number in range(10)))

    asyncio.run(main())
    works = {span.span_id: span.attrs["number"] for span in run.spans() if span.name == "work"}
    for number in range(10):
        parent = run.named(f"inner{number}").parent_id
        assert works[str(parent)] == number


@pytest.mark.usefixtures("either")
def test_a_generator_based_coroutine_can_be_awaited() -> None:
    @rs.trace
    @types.coroutine
    def old_style() -> Generator[None, None, int]:
        yield
        return 5

    async def main() -> int:
        value: int = await old_style()
        return value

    assert asyncio.run(main()) == 5


# Generators


@pytest.mark.usefixtures("either")
def test_a_generator_gives_takes_and_returns_what_it_did() -> None:
    @rs.trace
    def echo(first: int) -> Generator[int, int, str]:
        got = first
        while got >= 0:
            got = yield got * 2
        return f"ended by {got}"

    generator = echo(1)
    assert next(generator) == 2
    assert generator.send(5) == 10
    with pytest.raises(StopIteration) as stop:
        generator.send(-3)
    assert stop.value.value == "ended by -3"
    with pytest.raises(StopIteration):
        next(generator)


@pytest.mark.usefixtures("either")
def test_an_exception_thrown_into_a_generator_arrives() -> None:
    @rs.trace
    def catcher() -> Generator[str, None, None]:
        for _ in range(2):
            try:
                yield "waiting"
            except ValueError as error:
                yield f"caught {error}"

    generator = catcher()
    next(generator)
    assert generator.throw(ValueError("a")) == "caught a"
    assert next(generator) == "waiting"
    with pytest.raises(KeyError):
        generator.throw(KeyError("b"))
    with pytest.raises(StopIteration):
        next(generator)


@pytest.mark.usefixtures("either")
def test_closing_a_generator_runs_its_clean_up() -> None:
    seen: list[str] = []

    @rs.trace
    def cleans() -> Generator[int, None, None]:
        try:
            yield 1
        finally:
            seen.append("cleaned")

    generator = cleans()
    next(generator)
    generator.close()
    assert seen == ["cleaned"]
    cleans().close()  # never started: nothing to clean
    assert seen == ["cleaned"]


@pytest.mark.usefixtures("either")
def test_a_generator_that_will_not_close_says_so() -> None:
    @rs.trace
    def stubborn() -> Generator[int, None, None]:
        try:
            yield 1
        except GeneratorExit:
            yield 2

    generator = stubborn()
    next(generator)
    with pytest.raises(RuntimeError, match="generator ignored GeneratorExit"):
        generator.close()


@pytest.mark.usefixtures("either")
def test_a_generator_can_be_delegated_to() -> None:
    @rs.trace
    def inner() -> Generator[int, str, str]:
        got = yield 1
        return got

    def outer() -> Generator[int, str, None]:
        result.append((yield from inner()))

    result: list[str] = []
    generator = outer()
    next(generator)
    with pytest.raises(StopIteration):
        generator.send("through")
    assert result == ["through"]


def test_a_generator_is_one_span_from_its_first_step_to_its_last(
    run: Capture, clock: FakeClock
) -> None:
    @rs.trace("produce", attrs=lambda n: {"n": n})
    def produce(n: int) -> Generator[int, None, None]:
        for number in range(n):
            clock.advance(1)
            yield number

    generator = produce(3)
    clock.advance(100)
    assert list(generator) == [0, 1, 2]
    span = run.named("produce")
    assert (span.duration_s, span.attrs, span.status) == (3.0, {"n": 3}, Status.OK)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda g: g.close(), Status.OK),
        (lambda g: g.throw(ValueError("x")), Status.ERROR),
        (lambda g: list(g), Status.OK),
    ],
)
def test_a_generator_left_early_ends_its_span(run: Capture, end: Any, status: Status) -> None:
    @rs.trace("produce")
    def produce() -> Generator[int, None, None]:
        yield 1
        yield 2

    generator = produce()
    next(generator)
    with contextlib.suppress(ValueError):
        end(generator)
    assert run.named("produce").status is status
    assert not rs.current()


def test_a_generator_that_is_forgotten_ends_its_span(run: Capture) -> None:
    @rs.trace("produce")
    def produce() -> Generator[int, None, None]:
        yield 1

    with rs.span("consumer") as consumer:
        generator = produce()
        next(generator)
        del generator
        gc.collect()
        assert rs.current() is consumer
    assert run.named("produce").status is Status.OK


def test_the_consumer_of_a_generator_keeps_its_own_current_span(run: Capture) -> None:
    @rs.trace("produce")
    def produce() -> Generator[int, None, None]:
        for number in range(2):
            with rs.span(f"making{number}"):
                yield number

    with rs.span("consumer") as consumer:
        for number in produce():
            assert rs.current() is consumer
            with rs.span(f"using{number}"):
                pass
        assert rs.current() is consumer
    for number in range(2):
        assert run.named(f"using{number}").parent_id == run.named("consumer").span_id
        assert run.named(f"making{number}").parent_id == run.named("produce").span_id
    assert run.named("produce").parent_id == run.named("consumer").span_id


@pytest.mark.parametrize("end", ["exhaust", "close", "throw", "fail"])
def test_a_generator_that_ends_under_another_span_leaves_that_one_current(
    run: Capture, end: str
) -> None:
    @rs.trace("produce")
    def produce() -> Generator[int, None, None]:
        yield 1
        if end == "fail":
            raise ValueError("x")

    generator = produce()
    with rs.span("first"):
        next(generator)
    with rs.span("second") as second:
        with contextlib.suppress(ValueError, StopIteration):
            if end == "close":
                generator.close()
            elif end == "throw":
                generator.throw(ValueError("x"))
            else:
                next(generator)
        assert rs.current() is second
        with rs.span("after"):
            pass
    assert run.named("after").parent_id == run.named("second").span_id
    assert run.named("produce").parent_id == run.named("first").span_id
    assert not rs.current()


def test_generators_that_take_turns_do_not_mix(run: Capture) -> None:
    @rs.trace("produce", attrs=lambda n: {"n": n})
    def produce(n: int) -> Generator[rs.Span, None, None]:
        for _ in range(3):
            yield rs.current()

    with rs.span("consumer") as consumer:
        for one, two in zip(produce(1), produce(2), strict=True):
            assert (one.attrs["n"], two.attrs["n"]) == (1, 2)
            assert rs.current() is consumer
    assert len(run.spans()) == 3


# Async generators


@pytest.mark.usefixtures("either")
def test_an_async_generator_gives_and_takes_what_it_did() -> None:
    @rs.trace
    async def echo(first: int) -> AsyncGenerator[int, int]:
        got = first
        while got >= 0:
            await asyncio.sleep(0)
            got = yield got * 2

    async def main() -> None:
        generator = echo(1)
        assert await anext(generator) == 2
        assert await generator.asend(5) == 10
        with pytest.raises(StopAsyncIteration):
            await generator.asend(-1)
        with pytest.raises(StopAsyncIteration):
            await anext(generator)
        assert [item async for item in limited(3)] == [0, 1, 2]

    @rs.trace
    async def limited(n: int) -> AsyncGenerator[int, None]:
        for number in range(n):
            yield number

    asyncio.run(main())


@pytest.mark.usefixtures("either")
def test_an_exception_thrown_into_an_async_generator_arrives() -> None:
    @rs.trace
    async def catcher() -> AsyncGenerator[str, None]:
        for _ in range(2):
            try:
                yield "waiting"
            except ValueError as error:
                yield f"caught {error}"

    async def main() -> None:
        generator = catcher()
        await anext(generator)
        assert await generator.athrow(ValueError("a")) == "caught a"
        assert await anext(generator) == "waiting"
        with pytest.raises(KeyError):
            await generator.athrow(KeyError("b"))

    asyncio.run(main())


@pytest.mark.usefixtures("either")
def test_closing_an_async_generator_runs_its_clean_up_at_once() -> None:
    seen: list[str] = []

    @rs.trace
    async def cleans() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned")

    async def main() -> None:
        generator = cleans()
        await anext(generator)
        await generator.aclose()
        assert seen == ["cleaned"]

    asyncio.run(main())


def test_an_async_generator_is_one_span_and_its_consumer_undisturbed(
    run: Capture, clock: FakeClock
) -> None:
    @rs.trace("produce")
    async def produce() -> AsyncGenerator[int, None]:
        for number in range(2):
            with rs.span(f"making{number}"):
                await asyncio.sleep(0)
                clock.advance(1)
                yield number

    async def main() -> None:
        with rs.span("consumer") as consumer:
            async for number in produce():
                assert rs.current() is consumer
                with rs.span(f"using{number}"):
                    await asyncio.sleep(0)
            assert rs.current() is consumer

    asyncio.run(main())
    for number in range(2):
        assert run.named(f"using{number}").parent_id == run.named("consumer").span_id
        assert run.named(f"making{number}").parent_id == run.named("produce").span_id
    assert run.named("produce").duration_s == 2.0


@pytest.mark.parametrize("end", ["exhaust", "close", "throw"])
def test_an_async_generator_that_ends_under_another_span_leaves_that_one_current(
    run: Capture, end: str
) -> None:
    @rs.trace("produce")
    async def produce() -> AsyncGenerator[int, None]:
        yield 1

    async def main() -> None:
        generator = produce()
        with rs.span("first"):
            await anext(generator)
        with rs.span("second") as second:
            with contextlib.suppress(ValueError, StopAsyncIteration):
                if end == "close":
                    await generator.aclose()
                elif end == "throw":
                    await generator.athrow(ValueError("x"))
                else:
                    await anext(generator)
            assert rs.current() is second

    asyncio.run(main())
    assert run.named("produce").parent_id == run.named("first").span_id
    assert run.named("produce").status is (Status.ERROR if end == "throw" else Status.OK)


def test_an_async_generator_stepped_from_several_tasks_stays_whole(run: Capture) -> None:
    @rs.trace("produce")
    async def produce() -> AsyncGenerator[rs.Span, None]:
        for _ in range(3):
            await asyncio.sleep(0)
            yield rs.current()

    async def main() -> None:
        generator = produce()
        with rs.span("consumer") as consumer:
            for _ in range(3):
                inside = await asyncio.wait_for(anext(generator), 10)
                assert inside.name == "produce"
                assert rs.current() is consumer
            await generator.aclose()
            assert rs.current() is consumer

    asyncio.run(main())
    assert run.named("produce").status is Status.OK
