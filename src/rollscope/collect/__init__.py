"""The receiving side of collection: keeping what others send, in the run directory they name."""
