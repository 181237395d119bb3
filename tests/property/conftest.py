"""How hard the property tests try."""

from hypothesis import settings

# No deadline: other work on the machine must not fail a test.
settings.register_profile("rollscope", deadline=None, max_examples=150)
settings.load_profile("rollscope")
