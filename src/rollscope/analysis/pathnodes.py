"""What the critical path is walked through: spans hung below each other, the last to end last."""

from collections.abc import Sequence

import msgspec

from rollscope.analysis.roles import is_sync, role_of
from rollscope.analysis.rows import SpanRow, open_interval
from rollscope.model.kinds import Kind

__all__ = ["Node", "hand_down", "has_meaning", "make_node", "make_tree"]


class Node(msgspec.Struct):
    """A span, session or step as the walk sees it."""

    start_ns: int
    end_ns: int
    name: str
    detail: str | None = None
    within: str | None = None
    session_id: int | None = None
    span_id: int | None = None
    children: "list[Node]" = []
    """By end, the last to end last; of equal ends, the longest last."""
    link: int | None = None
    is_wait: bool = False
    """Whether it is a wait of the trainer."""


def make_node(row: SpanRow, now_ns: int) -> Node:
    """Make a node of a span; one that is open lasts until now."""
    start_ns, end_ns = open_interval(row, now_ns)
    return Node(
        start_ns,
        end_ns,
        row.name,
        detail=row.detail,
        within=row.name if row.kind is Kind.PHASE or has_meaning(row.name) else None,
        session_id=row.session_id,
        span_id=row.span_id,
        link=row.link,
        is_wait=role_of(row.name) == "waiting",
    )


def make_tree(root: Node, rows: Sequence[SpanRow], now_ns: int) -> Node:
    """Hang rows below a root: each below its parent, or below the root if that is not there."""
    nodes = {row.span_id: make_node(row, now_ns) for row in rows if row.span_id != root.span_id}
    parent_of = {row.span_id: row.parent_id for row in rows}
    for span_id, node in nodes.items():
        nodes.get(parent_of[span_id] or root.span_id or 0, root).children.append(node)
    return root


def hand_down(root: Node, *, of_trainer: bool) -> list[Node]:
    """Hand down what each node lies in, order all children, and give all nodes below the root."""
    found: list[Node] = []
    todo = [root]
    while todo:
        node = todo.pop()
        node.children.sort(key=lambda child: (child.end_ns, -child.start_ns))
        for child in node.children:
            if child.within is None:
                child.within, child.detail = node.within, node.detail or child.detail
            child.session_id = node.session_id
            child.is_wait = child.is_wait and of_trainer
        found += node.children
        todo += node.children
    return found


def has_meaning(name: str) -> bool:
    """Say whether a name tells what the time was spent on."""
    return role_of(name) is not None or is_sync(name)
