"""The stand-ins for other tracers, and the native calls that they stand beside."""
