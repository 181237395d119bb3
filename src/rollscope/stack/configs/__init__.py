"""The configurations of the programs that the stack runs, written from values."""
