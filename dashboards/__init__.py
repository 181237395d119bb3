"""Grafana's dashboards, as typed Python: one module for each, and what they share.

`scripts/write-dashboards` renders them into the package, where the servers' set-up finds them.
Grafana 10 and later read them; data sources are named by the uids that the set-up gives them.
"""
