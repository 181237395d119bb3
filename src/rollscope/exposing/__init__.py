"""What runs show to monitoring systems: metrics that need no code of the user's, and recorded ones.

`catalogue` declares every family that is ours; other modules say what each of them stands at.
"""
