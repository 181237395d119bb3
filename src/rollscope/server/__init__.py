"""The server behind the live page: the API over a directory of runs, and the page itself.

It reads runs and never writes to a trainer's data. What is computed stands in `answers` and
`timeline`; here it is looked up, kept for a moment, and sent.
"""
