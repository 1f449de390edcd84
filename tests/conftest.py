"""Settings of all tests: no test fails for being slow, since machines are shared."""

from hypothesis import settings

settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")
