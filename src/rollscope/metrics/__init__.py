"""Metrics: how counters, gauges and histograms are aggregated. No sockets, no threads."""
