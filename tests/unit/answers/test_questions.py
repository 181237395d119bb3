"""Every question of the registry can be asked, encoded, and is known to the page."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rollscope.answers.encoding import encode_answer
from rollscope.answers.questions import QUESTIONS, questions_schema
from rollscope.store.embedded import RunStore

ROOT = Path(__file__).parents[3]


def needed(store: RunStore, name: str) -> dict[str, str]:
    """Give the parameters that a question cannot do without."""
    sql = "SELECT session_id FROM sessions ORDER BY start_ns LIMIT 1"
    values = {
        "session": f"{store.query(sql)['session_id'][0].as_py():016x}",
        "name": "slots",
    }
    asked = QUESTIONS[name].parameters
    return {one.name: values[one.name] for one in asked if one.is_needed}


def check_type(value: Any, schema: dict[str, Any], components: dict[str, Any], at: str) -> None:
    """See that a value is what its schema says, as far as names and plain types go."""
    if "$ref" in schema:
        check_type(value, components[schema["$ref"].rpartition("/")[2]], components, at)
        return
    if "anyOf" in schema:
        options = [one for one in schema["anyOf"] if (one.get("type") == "null") == (value is None)]
        assert options, at
        if len(options) == 1:
            check_type(value, options[0], components, at)
        return
    match schema.get("type"):
        case "object" if "properties" in schema:
            assert value.keys() == schema["properties"].keys(), at
            for name, one in schema["properties"].items():
                check_type(value[name], one, components, f"{at}.{name}")
        case "array" if isinstance(schema.get("items"), dict):
            for item in value:
                check_type(item, schema["items"], components, f"{at}[]")
        case "string":
            assert isinstance(value, str), at
            assert re.search(schema.get("pattern", ""), value), at
        case "integer" | "number":
            assert isinstance(value, int | float), at
        case "boolean":
            assert isinstance(value, bool), at


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_answer_is_encoded_as_its_schema_says(
    running: RunStore, over: RunStore, name: str
) -> None:
    schema = questions_schema()
    for store in (running, over):
        if name == "series" and store is over:
            continue  # it records no metrics
        answer = QUESTIONS[name].ask(store, needed(store, name))
        assert isinstance(answer, QUESTIONS[name].answer)
        value = json.loads(encode_answer(answer))
        check_type(value, schema["questions"][name]["answer"], schema["components"], name)


def test_questions_are_in_order_and_say_what_they_answer() -> None:
    assert list(QUESTIONS) == sorted(QUESTIONS)
    for name, question in QUESTIONS.items():
        assert question.name == name
        assert question.doc
        assert all(parameter.doc for parameter in question.parameters), name
        for parameter in question.parameters:
            if parameter.default is not None:
                parameter.check(parameter.default)


def test_the_schema_can_be_sent_as_json() -> None:
    decoded = json.loads(msgspec.json.encode(questions_schema()))
    assert decoded["questions"].keys() == QUESTIONS.keys()
    assert decoded["components"]["StuckRow"]["properties"]["span_id"]["type"] == "string"


def test_the_types_of_the_page_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "write-types"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (ROOT / "web" / "src" / "model" / "answers.ts").read_text()
    for name, question in QUESTIONS.items():
        assert re.search(rf"^  {name}: \w*{question.answer.__name__};$", text, re.MULTILINE), name
    assert "session_id: string | null;" in text


class Part(msgspec.Struct):
    """A part of an answer."""

    span_id: int
    process: int | str
    holders: list[int]
    attrs: dict[str, Any]


def test_only_fields_hold_ids() -> None:
    answer = Part(1, "rollout 0", [2], {"process": 7, "span_id": 8, "holders": [9]})
    assert json.loads(encode_answer(answer)) == {
        "span_id": "0000000000000001",
        "process": "rollout 0",
        "holders": ["0000000000000002"],
        "attrs": {"process": 7, "span_id": 8, "holders": [9]},
    }


def test_columns_of_a_list_of_rows_hold_ids_too() -> None:
    assert json.loads(encode_answer([{"span_id": 1, "n": 1}])) == [
        {"span_id": "0000000000000001", "n": 1}
    ]
