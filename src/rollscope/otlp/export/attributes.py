"""What our attributes are called among others: the receiver's names, read the other way round."""

from functools import cache
from typing import Any, Final

from rollscope.otlp.forms import Attrs
from rollscope.otlp.othernames import DETAILS, PLACES
from rollscope.otlp.told import OWN, WAITS, written_name

__all__ = ["OWN", "exported_attrs", "fit_value", "place_name"]

_LISTS: Final = frozenset({"gen_ai.response.finish_reasons"})
_INT64: Final = range(-(2**63), 2**63)


_NAMES: Final = {
    **{
        known: written_name(name) for name, aliases in DETAILS.items() for known in (*aliases, name)
    },
    **{name: OWN + name for name in WAITS},
    "tool_call_id": "gen_ai.tool.call.id",
    "operation": "gen_ai.operation.name",
}
"""By every name that an attribute may have in a run."""


@cache
def place_name(name: str) -> str:
    """Give the name under which a place is written, such as `rollscope.task_key`."""
    return next(alias for alias in PLACES[name] if alias.startswith(OWN))


def exported_attrs(attrs: Attrs, most_characters: int | None) -> Attrs:
    """Give attributes under the names that others know; of two with one name the first counts.

    Args:
        attrs: As they were recorded.
        most_characters: What is longer is cut; None: nothing is.
    """
    exported: Attrs = {}
    for key, value in attrs.items():
        if value is None or not key:
            continue
        name = _NAMES.get(key, key)
        if name in _LISTS and not isinstance(value, list):
            value = [value]
        exported.setdefault(name, fit_value(value, most_characters))
    return exported


def fit_value(value: Any, most_characters: int | None) -> Any:  # noqa: ANN401
    """Make a value that OTLP can hold."""
    if isinstance(value, str):
        return value if most_characters is None else value[:most_characters]
    if isinstance(value, list):
        return [fit_value(one, most_characters) for one in value]
    if isinstance(value, dict):
        return {str(key): fit_value(one, most_characters) for key, one in value.items()}
    if isinstance(value, int) and value not in _INT64:
        return str(value)
    return value
