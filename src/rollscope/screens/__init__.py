"""Answers as text for a terminal: words first, then a table, then a small plot.

Most modules turn one answer into text for a `Screen`; `sheet`, `tables`, `plots` and `words` are
what they are made with. Nothing here opens a run or prints.
"""
