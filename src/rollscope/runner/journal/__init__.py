"""An append-only file of what happens to tasks, to find a killed runner's work again."""

from rollscope.runner.journal.records import fold_records, read_journal
from rollscope.runner.journal.writer import Journal

__all__ = ["Journal", "fold_records", "read_journal"]
