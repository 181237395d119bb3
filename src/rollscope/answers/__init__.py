"""Answers: one module per question, which fetches rows, computes, and gives a typed result.

What is computed stands in `analysis`, where rows come from in `store`. Commands, pages and exports
show answers and compute nothing themselves.
"""
