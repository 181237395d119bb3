"""What `bench_runner.py` is made of: the work, who runs it, what is measured, what is promised."""
