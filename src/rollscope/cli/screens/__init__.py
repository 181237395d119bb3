"""What the reading commands print: answers as words first, then a table, then a small plot.

Each module turns one answer into text for a `Screen`; commands open runs and pick what to ask.
"""
