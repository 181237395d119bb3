"""How answers look in a terminal: tables, small plots, a bar while one waits. Computes nothing."""
