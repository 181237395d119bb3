"""Names that mean something only beside another one, or in one form of their value."""

import re
from typing import Final

from rollscope.otlp.forms import Attrs

__all__ = ["LOOP", "PAIRED", "read_pairs"]

LOOP: Final = "loop"
"""In a place: which part of an agent's loop RL-Insight tells of; each part has a trace of its own,
and what it calls a lane is a session."""
PAIRED: Final = frozenset(
    {
        "experiment_name",
        "monitor.trace_source",
        "rollout_n",
        "session",
        "state_lane_id",
        "uid",
    }
)
"""Without any of them there is nothing to read here."""
_LOOP_LANE: Final = re.compile(
    r"experiment=(?P<experiment>.*)/sample=(?P<sample>[^/]*)/session=(?P<session>[^/]*)"
    r"/traj=(?P<traj>[^/]*)"
)
_REPLICA_LANE: Final = re.compile(r"replica_\d+")
_WEAK: Final = frozenset({"", "sample_id", "uid"})
"""Names of a session that a pair goes before."""
_LOOP_SOURCES: Final = frozenset({"session", "task", "gateway"})


def read_pairs(attrs: Attrs, place: Attrs, details: Attrs, session_alias: str) -> str:
    """Read such names into a place.

    Args:
        attrs: All attributes.
        place: What is known of the place so far; added to.
        details: What is kept; added to.
        session_alias: The name under which the session was given; empty if it was not.

    Returns:
        The name under which the session was given, now.
    """
    if "experiment_name" in attrs and "run" not in place:
        project, name = attrs.get("project"), attrs["experiment_name"]
        place["run"] = f"{project}-{name}" if project else name
    lane = attrs.get("state_lane_id")
    loop = _LOOP_LANE.fullmatch(lane) if isinstance(lane, str) else None
    source = attrs.get("monitor.trace_source")
    if loop is not None or source in _LOOP_SOURCES:
        return _read_loop(attrs, place, details, loop) or session_alias
    if isinstance(lane, str) and _REPLICA_LANE.fullmatch(lane):
        details.setdefault("replica", lane)
    if attrs.get("monitor.trace_segment") == "duration" and "process_id" in attrs:
        place.setdefault("lane", attrs["process_id"])
    if session_alias in _WEAK:
        for task, sample in (("sample_index", "rollout_n"), ("sample", "session")):
            if task in attrs and sample in attrs:
                session_alias = _name_session(place, attrs[task], attrs[sample], sample)
                break
    if "uid" in attrs and session_alias != "uid":
        place.setdefault("group", attrs["uid"])
    return session_alias


def _read_loop(attrs: Attrs, place: Attrs, details: Attrs, lane: re.Match[str] | None) -> str:
    """Read a part of an agent's loop; its lane says what it belongs to, or else its attributes."""
    told = lane.groupdict() if lane is not None else attrs
    sample, session = told.get("sample"), told.get("session")
    if sample in (None, "") or session in (None, ""):
        return ""
    place.pop("lane", None)
    place[LOOP] = attrs.get("monitor.trace_source") or "turn"
    if attrs.get("uid"):
        place.setdefault("group", attrs["uid"])
    if told.get("traj") not in (None, ""):
        details.setdefault("branch", told["traj"])
    place.pop("task_key", None)
    return _name_session(place, sample, session, "session")


def _name_session(place: Attrs, task: object, sample: object, alias: str) -> str:
    place.setdefault("task_key", task)
    place.setdefault("sample", sample)
    place["session"] = f"{task}/{sample}"
    return alias
