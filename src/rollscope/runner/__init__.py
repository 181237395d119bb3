"""Runs thousands of slow, failing, uneven coroutines; loses none, and says what each is doing.

from rollscope.runner import Runner

with Runner(concurrency=256) as runner:
for item in data:
runner.submit(rollout, item)
for outcome in runner.wait(len(data)):
print(outcome.id, outcome.status, outcome.value)
"""

from rollscope.runner.collecting import Outcomes
from rollscope.runner.context import TaskContext, ctx
from rollscope.runner.ending import CloseReport, DrainReport
from rollscope.runner.gates import (
    AgePolicy,
    BudgetGate,
    ConcurrencyGate,
    ExternalGate,
    Gate,
    Permit,
    RateGate,
    StalenessGate,
    TaskView,
)
from rollscope.runner.groups import (
    Group,
    GroupOutcome,
    GroupPolicy,
    GroupStats,
    after,
    all_ended,
    at_least,
    first,
)
from rollscope.runner.handle import Handle
from rollscope.runner.journal import read_journal
from rollscope.runner.ledger import Ledger
from rollscope.runner.outcome import Attempt, Failure, Outcome, Reason, Status
from rollscope.runner.reporting import Health, TaskReport
from rollscope.runner.retry import Retry
from rollscope.runner.runner import Runner
from rollscope.runner.state import Codec, PickleCodec
from rollscope.runner.stats import Stats
from rollscope.runner.steering import Pause
from rollscope.runner.task import TaskOptions, Verdict
from rollscope.runner.tiers import Tier

__all__ = [
    "AgePolicy",
    "Attempt",
    "BudgetGate",
    "CloseReport",
    "Codec",
    "ConcurrencyGate",
    "DrainReport",
    "ExternalGate",
    "Failure",
    "Gate",
    "Group",
    "GroupOutcome",
    "GroupPolicy",
    "GroupStats",
    "Handle",
    "Health",
    "Ledger",
    "Outcome",
    "Outcomes",
    "Pause",
    "Permit",
    "PickleCodec",
    "RateGate",
    "Reason",
    "Retry",
    "Runner",
    "StalenessGate",
    "Stats",
    "Status",
    "TaskContext",
    "TaskOptions",
    "TaskReport",
    "TaskView",
    "Tier",
    "Verdict",
    "after",
    "all_ended",
    "at_least",
    "ctx",
    "first",
    "read_journal",
]
