"""The items of a row of slime's timeline cache: spans, instants, ends without a start."""

import re
from typing import Any, Final, NamedTuple

from rollscope.importing.values import seconds_to_ns
from rollscope.otlp.aliases import read_aliases, whole_number

__all__ = ["Item", "read_items", "read_moment"]

_DRAWN: Final = (" [P]", " [D]")
_WORDS: Final = re.compile(r"[^a-z0-9]+")
_LATEST_NS: Final = 2**62
_ROOT: Final = "generate_and_rm"


class Item(NamedTuple):
    """What a sample did at some time."""

    name: str
    source_id: str
    parent: str
    start_ns: int
    end_ns: int
    """0 for a span without an end; of an instant, its time."""
    is_instant: bool
    is_orphan: bool
    """Whether it is an end whose start is not known."""
    attrs: dict[str, Any]

    @property
    def is_root(self) -> bool:
        """Whether it is the sample's whole work."""
        return self.name.startswith(_ROOT) and not self.is_instant

    @property
    def phase(self) -> str:
        """The phase that its name stands for; empty if for none that is known."""
        words = _WORDS.split(self.name.lower())
        if self.is_root:
            return ""
        if any("generate" in word for word in words):
            return "generate"
        return "reward" if "rm" in words or any("reward" in word for word in words) else ""

    @property
    def error(self) -> tuple[str, str] | None:
        """Type and text of what went wrong; None if nothing did."""
        kind, text = self.attrs.get("error.type", ""), self.attrs.get("error.message", "")
        return (str(kind), str(text)) if kind or text else None


def read_moment(value: object) -> int:
    """Read a time; 0 if it is none."""
    time_ns = seconds_to_ns(value)
    return time_ns if time_ns is not None and 0 < time_ns < _LATEST_NS else 0


def read_items(value: object) -> tuple[list[Item], dict[str, int]]:
    """Read the items of a row.

    Returns:
        The items, and how many were left out, by why.
    """
    items: list[Item] = []
    left: dict[str, int] = {}
    for told in value if isinstance(value, list) else ():
        item = _read_item(told) if isinstance(told, dict) else "items that are no objects"
        if isinstance(item, str):
            left[item] = left.get(item, 0) + 1
        else:
            items.append(item)
    return items, left


def _read_item(told: dict[str, Any]) -> Item | str:
    name, source_id = str(told.get("name") or "span"), _text(told.get("span_id"))
    if ":pd:" in source_id and name.endswith(_DRAWN):
        return "drawn copies"
    state = told.get("state")
    is_instant = state in ("point_event", "orphan_end")
    start_ns = read_moment(told.get("ts" if is_instant else "start_ts"))
    if not start_ns:
        return "items without a time"
    # Where an open span is drawn to is not where it ended.
    end_ns = read_moment(told.get("end_ts")) if state != "open_span" else 0
    attrs = _read_attrs(told)
    return Item(
        name=name,
        source_id=source_id,
        parent=_text(told.get("parent_span_id")),
        start_ns=start_ns,
        end_ns=start_ns if is_instant else end_ns,
        is_instant=is_instant,
        is_orphan=state == "orphan_end",
        attrs=attrs,
    )


def _read_attrs(told: dict[str, Any]) -> dict[str, Any]:
    given = told.get("attrs")
    given = given if isinstance(given, dict) else {}
    merged: dict[str, Any] = {}
    if "start_attrs" in given or "end_attrs" in given:
        for part in (given.get("start_attrs"), given.get("end_attrs")):
            merged.update(part if isinstance(part, dict) else {})
    else:
        merged = dict(given)
    merged.pop("clipped_by", None)
    meaning = read_aliases(merged)
    attrs = {**meaning.place, **meaning.details}
    attrs.update({f"{key}_chars": len(str(text)) for key, text in meaning.content.items()})
    for source, name in (("error_type", "error.type"), ("error_message", "error.message")):
        if source in attrs:
            attrs[name] = attrs.pop(source)
    attempt = whole_number(told.get("attempt"))
    if attempt:
        attrs["attempt"] = attempt
    return attrs


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
