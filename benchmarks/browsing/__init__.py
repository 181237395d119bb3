"""What `bench_page.py` is made of: the peers of a measurement, what is measured, what is wanted."""
