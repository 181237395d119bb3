"""What the state of a rollout says of its session: reward, status and error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollscope.instrument.spans import NOOP
from rollscope.integrations.xtuner.stages import is_final, verdict_of
from rollscope.integrations.xtuner.states import reward_of

if TYPE_CHECKING:
    from rollscope.instrument.spans import Session
    from rollscope.integrations.xtuner.states import Member

__all__ = ["tell_verdict"]


def tell_verdict(session: Session, member: Member | None) -> None:
    """Tell a session what its rollout has come to so far; what it knows already is not repeated."""
    if member is None or session is NOOP:
        return
    facts: dict[str, Any] = {}
    score, passed = reward_of(member.state)
    if score is not None:
        facts["reward"] = score
    if passed is not None:
        facts["reward.pass"] = passed
    if is_final(member.status):
        facts["source_status"] = member.status
    if member.error_msg:
        facts["error.message"] = member.error_msg
    known = session.attrs
    news = {name: item for name, item in facts.items() if known.get(name) != item}
    if not news:
        return
    verdict = verdict_of(member.status)
    if verdict.outcome is None:
        session.set(**news)
    else:
        reason = verdict.reason or _short(member.error_msg)
        session.finish(verdict.outcome, reason=reason, **news)
    known.update(news)


def _short(text: str | None) -> str | None:
    """Give the head of a message if it is the name of an error."""
    head = (text or "").partition(":")[0].strip()
    return head if head.isidentifier() else None
