"""What can be wrong with a run: a check each, and what it says."""
