"""Families of many runs as one list, in which every name comes once."""

from collections.abc import Iterable

from rollscope.exposing.catalogue import FAMILIES
from rollscope.metrics.families import Exposed, Family, FamilyKind, Point

__all__ = ["merge_families"]


def merge_families(exposed: Iterable[Exposed]) -> list[Exposed]:
    """Join the points of families with one name: ours in their order, then others by name.

    What one run counts, another may measure. Then the second gets a name that ends with its kind.
    """
    by_name: dict[str, tuple[Family, list[Point]]] = {}
    stems: dict[str, FamilyKind] = {}
    for family, points in exposed:
        family = _told_apart(family, stems)
        known = by_name.get(family.name)
        if known is None:
            by_name[family.name] = family, list(points)
        else:
            by_name[family.name] = _join(*known, family, points)
    order = {family.name: place for place, family in enumerate(FAMILIES)}
    names = sorted(by_name, key=lambda name: (order.get(name, len(order)), name))
    return [Exposed(*by_name[name]) for name in names]


def _told_apart(family: Family, stems: dict[str, FamilyKind]) -> Family:
    """Give a family whose stem no family of another kind has."""
    if stems.setdefault(family.stem, family.kind) is family.kind:
        return family
    end = "_total" if family.kind is FamilyKind.COUNTER else ""
    name = f"{family.stem}_{family.kind}{end}"
    return _told_apart(_renamed(family, name), stems)


def _renamed(family: Family, name: str) -> Family:
    return Family(
        name=name, kind=family.kind, help=family.help, labels=family.labels, bounds=family.bounds
    )


def _join(
    family: Family, points: list[Point], other: Family, more: Iterable[Point]
) -> tuple[Family, list[Point]]:
    if other.labels == family.labels:
        points.extend(more)
        return family, points
    labels = tuple(dict.fromkeys((*family.labels, *other.labels)))
    joined = Family(
        name=family.name, kind=family.kind, help=family.help, labels=labels, bounds=family.bounds
    )
    return joined, [
        *(_filled(point, family.labels, labels) for point in points),
        *(_filled(point, other.labels, labels) for point in more),
    ]


def _filled(point: Point, names: tuple[str, ...], labels: tuple[str, ...]) -> Point:
    values = dict(zip(names, point.labels, strict=True))
    return point._replace(labels=tuple(values.get(name, "") for name in labels))
