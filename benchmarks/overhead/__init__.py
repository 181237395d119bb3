"""The parts of `bench_overhead.py`: how it measures, what it measures, how it reports."""
