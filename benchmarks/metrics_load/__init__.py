"""What metrics cost the caller, and what becomes of many calls."""
