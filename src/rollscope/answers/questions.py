"""Every question that a run can be asked: what commands, server, report and page types go by."""

from typing import Any, Final

import msgspec

from rollscope.answers.about_panels import ABOUT_PANELS
from rollscope.answers.about_run import ABOUT_RUN
from rollscope.answers.about_sessions import ABOUT_SESSIONS
from rollscope.answers.about_steps import ABOUT_STEPS
from rollscope.answers.encoding import is_id, is_list_of_ids
from rollscope.answers.question import Question

__all__ = ["QUESTIONS", "questions_schema"]

QUESTIONS: Final[dict[str, Question]] = {
    question.name: question
    for question in sorted(
        (*ABOUT_RUN, *ABOUT_STEPS, *ABOUT_SESSIONS, *ABOUT_PANELS),
        key=lambda question: question.name,
    )
}
"""By name, in order. A question is added to the tuple of what it is about."""

_ID: Final = {"type": "string", "pattern": "^[0-9a-f]{16}$"}


def questions_schema() -> dict[str, Any]:
    """Give the JSON schema of every answer, and what each question takes."""
    asked = list(QUESTIONS.values())
    schemas, components = msgspec.json.schema_components(
        [question.answer for question in asked], ref_template="#/components/{name}"
    )
    return {
        "questions": {
            question.name: {
                "doc": question.doc,
                "parameters": msgspec.to_builtins(question.parameters),
                "answer": schema,
            }
            for question, schema in zip(asked, schemas, strict=True)
        },
        "components": {name: _with_text_ids(one) for name, one in sorted(components.items())},
    }


def _with_text_ids(component: dict[str, Any]) -> dict[str, Any]:
    """Say that ids are text, which is what they are encoded as."""
    properties = component.get("properties", {})
    for name, schema in properties.items():
        if is_id(name):
            properties[name] = _as_text(schema)
        elif is_list_of_ids(name) and "items" in schema:
            schema["items"] = _as_text(schema["items"])
    return component


def _as_text(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return {**schema, "anyOf": [_as_text(one) for one in schema["anyOf"]]}
    return dict(_ID) if schema.get("type") == "integer" else schema
