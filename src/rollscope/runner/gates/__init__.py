"""What holds tasks back: limits, rates, budgets, and the age of the policy they are made with."""

from rollscope.runner.gates.age import AgePolicy, age_of, judge_age, oldest_useful_version
from rollscope.runner.gates.base import CountingGate, Gate, Permit, TaskView
from rollscope.runner.gates.budget import BudgetGate
from rollscope.runner.gates.limits import ConcurrencyGate, ExternalGate
from rollscope.runner.gates.rate import RateGate
from rollscope.runner.gates.staleness import StalenessGate

__all__ = [
    "AgePolicy",
    "BudgetGate",
    "ConcurrencyGate",
    "CountingGate",
    "ExternalGate",
    "Gate",
    "Permit",
    "RateGate",
    "StalenessGate",
    "TaskView",
    "age_of",
    "judge_age",
    "oldest_useful_version",
]
