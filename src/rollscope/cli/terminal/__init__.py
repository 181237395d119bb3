"""What commands need of a terminal: a bar while one waits, a pager, a prompt, answers as JSON."""
