"""The supervisor: starts the members in order, watches them, restarts them, ends them in reverse.

One thread and one loop. Whatever changes is written to the state file at once, so that other
commands, and whoever comes after a supervisor that was killed, know every process.
"""

import os
import time
from collections.abc import Callable
from typing import Final

from rollscope.errors import CommandError
from rollscope.stack.children import Child, keep_one_old, last_lines
from rollscope.stack.health import is_healthy
from rollscope.stack.interrupts import Interrupts
from rollscope.stack.members import Member
from rollscope.stack.planning import StackPlan
from rollscope.stack.processes import identify
from rollscope.stack.restarts import RestartPolicy, Restarts
from rollscope.stack.statefile import MemberState, StackState, StateDir

__all__ = ["PATIENCE_S", "Interrupted", "Supervisor"]

PATIENCE_S: Final = 8.0
"""How long a member may take to end before it is killed."""
_READY_S: Final = 60.0
"""How long one may take until it is ready."""
_LOOK_S: Final = 0.05
_TICK_S: Final = 0.5
_LOGS_EVERY_S: Final = 30.0
"""How often logs are looked at that members write for months."""
_STEADY_S: Final = 0.5
"""A member that answers nowhere is ready if it has not ended after this long."""


class Interrupted(Exception):
    """Somebody asked for an end before everything was up."""


class _Seat:
    """A place in the stack, and whoever sits in it at the moment."""

    def __init__(self, member: Member, where: StateDir, policy: RestartPolicy) -> None:
        self.member = member
        self.log = where.log_of(member.name)
        self.child: Child | None = None
        self.started_s = 0.0
        self.restarts = Restarts(policy)
        self.shown = MemberState(
            name=member.name,
            state="waiting",
            address=member.address,
            health=member.health,
            version=member.version,
            log=str(self.log),
        )

    def start(self) -> None:
        keep_one_old(self.log)
        self.child = Child(self.member, self.log)
        self.started_s = time.monotonic()
        self.shown.process = self.child.identity
        self.shown.state = "starting"

    def is_ready(self) -> bool:
        if self.member.health:
            return is_healthy(self.member.health)
        return time.monotonic() - self.started_s >= _STEADY_S

    def is_late(self) -> bool:
        return time.monotonic() - self.started_s > _READY_S


class Supervisor:
    """Looks after one stack; the lock of its state directory is held by the caller."""

    def __init__(
        self,
        where: StateDir,
        plan: StackPlan,
        say: Callable[[str], None],
        policy: RestartPolicy | None = None,
    ) -> None:
        """Get ready to run a plan; `say` is told what the user should know."""
        self._where = where
        self._say = say
        self._is_write_told = False
        self._is_written = False
        self._logs_seen_s = time.monotonic()
        self._seats = [_Seat(each, where, policy or RestartPolicy()) for each in plan.members]
        me = identify(os.getpid())
        if me is None:
            raise CommandError("this system does not tell which processes run; see docs/monitoring")
        self._state = StackState(
            supervisor=me,
            page=plan.page,
            runs=str(plan.runs),
            token_file=None if plan.token_file is None else str(plan.token_file),
            members=[seat.shown for seat in self._seats],
        )

    def start(self, interrupts: Interrupts) -> None:
        """Start every member, each when the one before is ready.

        Raises:
            CommandError: One does not come up; the message ends with the last lines of its log.
            Interrupted: Somebody asked for an end meanwhile.
        """
        self._write()
        for seat in self._seats:
            self._bring_up(seat, interrupts)
        self._state.is_ready = True
        self._write()

    def _bring_up(self, seat: _Seat, interrupts: Interrupts) -> None:
        try:
            seat.start()
        except OSError as error:
            raise CommandError(f"{seat.member.name} cannot be started: {error}") from error
        self._write()
        while not seat.is_ready():
            if interrupts.asked:
                raise Interrupted
            if seat.child is None or seat.child.has_ended():
                how = "" if seat.child is None else seat.child.say_end()
                raise CommandError(_with_log(f"{seat.member.name} {how} while it started", seat))
            if seat.is_late():
                raise CommandError(
                    _with_log(f"{seat.member.name} is not ready after {_READY_S:g} s", seat)
                )
            interrupts.wait(_LOOK_S)
        seat.shown.state = "running"
        self._write()

    def watch(self, interrupts: Interrupts) -> int:
        """Look after the members until a signal asks for an end; gives its number."""
        while not interrupts.asked:
            before = [(seat.shown.state, seat.shown.process) for seat in self._seats]
            for seat in self._seats:
                self._look_after(seat)
            after = [(seat.shown.state, seat.shown.process) for seat in self._seats]
            if before != after or not self._is_written:
                self._write()
            self._trim_logs()
            interrupts.wait(_TICK_S)
        return interrupts.asked[0]

    def _trim_logs(self) -> None:
        if time.monotonic() - self._logs_seen_s >= _LOGS_EVERY_S:
            self._logs_seen_s = time.monotonic()
            for log in (self._where.log_of("server"), *(seat.log for seat in self._seats)):
                keep_one_old(log)

    def _look_after(self, seat: _Seat) -> None:
        name, shown = seat.member.name, seat.shown
        if seat.child is not None and seat.child.has_ended():
            self._note_end(seat, f"{name} {seat.child.say_end()}")
        elif shown.state == "starting" and seat.is_ready():
            shown.state, shown.problem = "running", ""
            self._say(f"{name} runs again.")
        elif shown.state == "starting" and seat.is_late() and seat.child is not None:
            seat.child.end(PATIENCE_S)
            self._note_end(seat, f"{name} was not ready after {_READY_S:g} s")
        elif shown.state == "restarting" and seat.restarts.is_due():
            shown.restarts += 1
            try:
                seat.start()
            except OSError as error:
                self._note_end(seat, f"{name} cannot be started: {error}")

    def _note_end(self, seat: _Seat, what: str) -> None:
        """Say that a member is gone, and decide whether it gets another try."""
        seat.child, seat.shown.process, seat.shown.problem = None, None, what
        delay_s = seat.restarts.next_delay_s()
        if delay_s is None:
            seat.shown.state = "failed"
            then = "It has ended too often and is left alone; the others go on"
        else:
            seat.shown.state = "restarting"
            then = f"It is started again in {delay_s:g} s"
        self._say(_with_log(f"{what}. {then}", seat))

    def stop(self, interrupts: Interrupts) -> list[str]:
        """End every member, the last one first; asked a second time, at once.

        Returns:
            The names of those that ran, in the order in which they were ended.
        """
        asked = len(interrupts.asked)
        ended = [seat.member.name for seat in reversed(self._seats) if seat.child is not None]
        for seat in reversed(self._seats):
            if seat.child is not None:
                seat.child.ask_to_end()
                deadline = time.monotonic() + PATIENCE_S
                while not seat.child.has_ended() and len(interrupts.asked) <= asked:
                    if time.monotonic() > deadline:
                        break
                    interrupts.wait(_LOOK_S)
                seat.child.end(0)
            seat.child = seat.shown.process = None
            seat.shown.state = "stopped"
            self._write()
        return ended

    def _write(self) -> None:
        """Write the state down; a full disk must not keep members from being looked after."""
        try:
            self._where.write(self._state)
            self._is_written = True
        except OSError as error:
            self._is_written = False
            if not self._is_write_told:
                self._is_write_told = True
                self._say(f"The state cannot be written to {self._where.state_file}: {error}")


def _with_log(sentence: str, seat: _Seat) -> str:
    lines = [f"  {line}" for line in last_lines(seat.log)]
    if not lines:
        return f"{sentence}; its log, {seat.log}, is empty."
    return "\n".join([f"{sentence}. The last lines of {seat.log}:", *lines])
