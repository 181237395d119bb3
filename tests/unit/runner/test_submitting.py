from __future__ import annotations

from contextvars import Context, ContextVar

from rollscope.runner import Runner

PATIENCE_S = 20.0
MARK: ContextVar[str] = ContextVar("mark", default="nothing")


async def look_and_set(text: str) -> str:
    seen = MARK.get()
    MARK.set(text)
    return seen


def test_tasks_submitted_where_nothing_is_set_do_not_see_what_others_set() -> None:
    with Runner(probe_s=None) as runner:
        for number in range(3):
            Context().run(runner.submit, look_and_set, str(number))
        seen = {outcome.value for outcome in runner.wait(3, PATIENCE_S)}
        assert seen == {"nothing"}
        assert Context().run(MARK.get) == "nothing"


def test_each_task_sees_what_was_set_when_it_was_submitted() -> None:
    def submit(text: str) -> int:
        MARK.set(text)
        return runner.submit(look_and_set, "other").id

    with Runner(probe_s=None) as runner:
        ids = {Context().run(submit, text): text for text in ("one", "two")}
        seen = {outcome.id: outcome.value for outcome in runner.wait(2, PATIENCE_S)}
    assert seen == ids
