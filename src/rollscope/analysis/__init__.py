"""Analysis: what recorded times mean. Pure functions over records; nothing in here does I/O."""
