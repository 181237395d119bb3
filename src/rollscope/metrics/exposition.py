"""Families as text: OpenMetrics 1.0 with exemplars, and the older text format of Prometheus.

Pure: what stands in the families is written, nothing is looked up or left out. Each name must come
once; whoever shows several runs joins their points first.
"""

import math
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from rollscope.metrics.families import Distribution, Exemplar, Exposed, Family, FamilyKind, Point

__all__ = ["TextFormat", "choose_format", "write_number", "write_text"]


class TextFormat(StrEnum):
    """A form of the text; its value is the content type."""

    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


_OPENMETRICS_TYPE: Final = "application/openmetrics-text"
_OPENMETRICS_VERSIONS: Final = frozenset({"", "1.0.0", "0.0.1"})
_PLAIN_TYPES: Final = frozenset({"text/plain", "text/*", "*/*", "application/*"})
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})


def choose_format(accept: str) -> TextFormat:
    """Choose what the Accept header of a request likes best.

    Whoever likes nothing that there is gets the older format, which everybody reads.
    """
    likes = {TextFormat.OPENMETRICS: 0.0, TextFormat.PROMETHEUS: 0.0}
    for part in accept.split(","):
        kind, *given = (piece.strip() for piece in part.lower().split(";"))
        parameters = dict(_parameter(one) for one in given)
        quality = _quality(parameters.get("q", "1"))
        version = parameters.get("version", "")
        if kind == _OPENMETRICS_TYPE and version in _OPENMETRICS_VERSIONS:
            likes[TextFormat.OPENMETRICS] = max(likes[TextFormat.OPENMETRICS], quality)
        elif kind in _PLAIN_TYPES and version in ("", "0.0.4"):
            likes[TextFormat.PROMETHEUS] = max(likes[TextFormat.PROMETHEUS], quality)
    if likes[TextFormat.OPENMETRICS] > 0 and (
        likes[TextFormat.OPENMETRICS] >= likes[TextFormat.PROMETHEUS]
    ):
        return TextFormat.OPENMETRICS
    return TextFormat.PROMETHEUS


def _parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value.strip().strip('"')


def _quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0.0 <= quality <= 1.0 else 0.0


def write_text(exposed: Iterable[Exposed], form: TextFormat) -> bytes:
    """Write families, those without points left out."""
    is_open = form is TextFormat.OPENMETRICS
    lines: list[str] = []
    for family, points in exposed:
        if points:
            lines += _heading(family, is_open)
            for point in points:
                lines += _samples(family, point, is_open)
    if is_open:
        lines.append("# EOF")
    lines.append("")
    # Half of a surrogate pair is no text, and readers would refuse the whole of it.
    return "\n".join(lines).encode(errors="replace")


def _heading(family: Family, is_open: bool) -> Iterator[str]:
    name, kind, unit = family.name, family.kind.value, family.unit
    if not is_open:
        yield f"# HELP {name} {family.help.translate(_HELP_ESCAPES)}"
        yield f"# TYPE {name} {'gauge' if family.kind is FamilyKind.INFO else kind}"
        return
    stem = family.stem
    yield f"# TYPE {stem} {kind}"
    if unit and family.kind is not FamilyKind.INFO:
        yield f"# UNIT {stem} {unit}"
    yield f"# HELP {stem} {family.help.translate(_ESCAPES)}"


def _samples(family: Family, point: Point, is_open: bool) -> Iterator[str]:
    labels = ",".join(
        f'{name}="{value.translate(_ESCAPES)}"'
        for name, value in zip(family.labels, point.labels, strict=True)
    )
    if isinstance(point.value, Distribution):
        yield from _buckets(family, labels, point.value, is_open)
        return
    braced = f"{{{labels}}}" if labels else ""
    yield f"{family.name}{braced} {write_number(point.value)}"


def _buckets(family: Family, labels: str, given: Distribution, is_open: bool) -> Iterator[str]:
    name, before = family.name, f"{labels}," if labels else ""
    reached = 0
    for place, count in enumerate(given.counts):
        reached += count
        bound = write_number(family.bounds[place]) if place < len(family.bounds) else "+Inf"
        exemplar = given.exemplars.get(place) if is_open else None
        shown = "" if exemplar is None else _exemplar(exemplar)
        yield f'{name}_bucket{{{before}le="{bound}"}} {reached}{shown}'
    braced = f"{{{labels}}}" if labels else ""
    yield f"{name}_count{braced} {reached}"
    yield f"{name}_sum{braced} {write_number(given.total)}"


def _exemplar(exemplar: Exemplar) -> str:
    labels = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in exemplar.labels)
    return f" # {{{labels}}} {write_number(exemplar.value)} {exemplar.at_s:.3f}"


def write_number(value: float) -> str:
    """Write a number so that it reads back as the same one."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
