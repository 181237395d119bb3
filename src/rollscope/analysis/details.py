"""What the phases of sessions were of: which tools, which environments, and so on."""

from collections.abc import Iterable, Mapping

from rollscope.analysis.roles import role_of

__all__ = ["DetailLabels", "detail_labels"]

DetailLabels = Mapping[int, Mapping[str, frozenset[str]]]
"""Details by session, and by the role of the phase or, where it has none, the phase."""


def detail_labels(details: Iterable[tuple[int, str, str]]) -> DetailLabels:
    """Sort what the phases of sessions were of by role, or by phase where it has none.

    Args:
        details: Session, phase and detail.
    """
    found: dict[int, dict[str, set[str]]] = {}
    for session_id, phase, detail in details:
        of_session = found.setdefault(session_id, {})
        of_session.setdefault(role_of(phase) or phase, set()).add(detail)
    return {
        session_id: {name: frozenset(labels) for name, labels in of_session.items()}
        for session_id, of_session in found.items()
    }
