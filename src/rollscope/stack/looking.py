"""What runs at the moment, as anybody can tell: from the state file, the kernel and the members."""

import msgspec

from rollscope.stack.health import is_healthy
from rollscope.stack.processes import is_alive
from rollscope.stack.statefile import MemberState, StateDir

__all__ = ["MemberView", "StackView", "look_at"]


class MemberView(msgspec.Struct, kw_only=True):
    """One member as it is now."""

    name: str
    state: str
    """As in the state file; or `down`: it has just ended; `silent`: it runs and does not answer;
    `orphaned`: it runs and nobody looks after it."""
    address: str
    pid: int | None
    version: str
    log: str
    restarts: int
    problem: str


class StackView(msgspec.Struct, kw_only=True):
    """A stack as it is now."""

    is_running: bool
    is_supervised: bool = False
    supervisor: int | None = None
    host: str = ""
    page: str = ""
    runs: str = ""
    token_file: str | None = None
    members: list[MemberView] = []

    @property
    def is_fine(self) -> bool:
        """Whether everything that should run does."""
        return self.is_supervised and all(each.state == "running" for each in self.members)


def look_at(where: StateDir) -> StackView:
    """Look at the stack of a state directory."""
    holder, state = where.holder(), where.read()
    if state is None or (holder is not None and holder != state.supervisor):
        # Nothing was written yet by whoever holds the lock, if anybody does.
        return StackView(
            is_running=holder is not None,
            is_supervised=holder is not None,
            supervisor=None if holder is None else holder.pid,
            host="" if holder is None else holder.host,
        )
    members = [_look_at_member(each, is_supervised=holder is not None) for each in state.members]
    return StackView(
        is_running=holder is not None or any(each.pid is not None for each in members),
        is_supervised=holder is not None,
        supervisor=None if holder is None else holder.pid,
        host=state.supervisor.host,
        page=state.page,
        runs=state.runs,
        token_file=state.token_file,
        members=members,
    )


def _look_at_member(member: MemberState, *, is_supervised: bool) -> MemberView:
    pid = None
    if member.process is not None and is_alive(member.process):
        pid = member.process.pid
    return MemberView(
        name=member.name,
        state=_state_now(member, pid, is_supervised=is_supervised),
        address=member.address,
        pid=pid,
        version=member.version,
        log=member.log,
        restarts=member.restarts,
        problem=member.problem,
    )


def _state_now(member: MemberState, pid: int | None, *, is_supervised: bool) -> str:
    if not is_supervised:
        return "stopped" if pid is None else "orphaned"
    if member.state in ("running", "starting") and pid is None:
        return "down"
    if member.state == "running" and member.health and not is_healthy(member.health):
        return "silent"
    return member.state
