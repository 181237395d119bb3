"""The parts of `bench_ingest`: bodies to send, senders, receivers, and what is wanted of them."""
