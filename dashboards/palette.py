"""The page's colours for phases and outcomes, so that pages and dashboards read alike.

They are read from the page's own style sheet. Grafana knows one colour for both of its themes;
those of the dark theme are taken, which is Grafana's default.
"""

import re
from pathlib import Path
from typing import Final

from rollscope.analysis.roles import PAUSE_STATES, ROLES, SYNC_PARTS
from rollscope.model.kinds import Outcome

__all__ = ["ACCENT", "BAD", "GOOD", "OUTCOMES", "PHASES", "STATES", "WARN"]

_SHEET: Final = Path(__file__).resolve().parent.parent / "web/src/style/tokens.css"
_TOKEN: Final = re.compile(r"--([a-z0-9-]+): (#[0-9a-f]{6});")


def _dark_tokens() -> dict[str, str]:
    _, _, dark = _SHEET.read_text().partition(':root[data-theme="dark"]')
    return dict(_TOKEN.findall(dark.partition("}")[0]))


_TOKENS: Final = _dark_tokens()
ACCENT: Final = _TOKENS["accent"]
GOOD: Final = _TOKENS["good"]
WARN: Final = _TOKENS["warn"]
BAD: Final = _TOKENS["bad"]

OUTCOMES: Final[dict[str, str]] = {
    Outcome.ACCEPTED: _TOKENS["role-generate"],
    Outcome.REJECTED: _TOKENS["role-train"],
    Outcome.FAILED: _TOKENS["bad"],
    Outcome.TIMEOUT: _TOKENS["role-tool"],
    Outcome.DROPPED: _TOKENS["name-3"],
    Outcome.CANCELLED: _TOKENS["role-other"],
}
"""By outcome."""

PHASES: Final[dict[str, str]] = {
    name: _TOKENS[f"role-{role}"] for role, names in ROLES.items() for name in sorted(names)
}
"""By the names of phases that have a role; others get a colour of Grafana's."""

STATES: Final[dict[str, str]] = {
    "rollout": _TOKENS["role-generate"],
    "train": _TOKENS["role-train"],
    "queue_empty": _TOKENS["role-waiting"],
    **dict.fromkeys(sorted(PAUSE_STATES), _TOKENS["name-2"]),
    **{name: _TOKENS["role-sync"] for names in SYNC_PARTS.values() for name in sorted(names)},
}
"""By the names of states of lanes."""
