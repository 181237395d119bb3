"""Stand-ins for other tracers: their names and shapes, our recorder. None of them is imported."""
