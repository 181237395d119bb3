"""What a report asks a run."""

import pytest

from rollscope.answers.scope import StepScope
from rollscope.reports.plan import about_run


@pytest.mark.parametrize(
    ("count", "asked"),
    [
        (3, {"20": "20", "50": "20", "200": "20"}),
        (22, {"20": "20", "50": "50", "200": "50"}),
        (90, {"20": "20", "50": "50", "200": "200"}),
        (900, {"20": "20", "50": "50", "200": "200"}),
    ],
)
def test_a_list_of_steps_is_never_shorter_than_what_the_page_asks_for(
    count: int, asked: dict[str, str]
) -> None:
    questions = about_run(StepScope(), range(count))

    found = {one.given["last"]: one.truly["last"] for one in questions if one.name == "steps"}

    assert found == asked
