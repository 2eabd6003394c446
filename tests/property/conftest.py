"""Hypothesis for all property tests: no deadline per example, because a busy machine is no bug."""

from hypothesis import settings

settings.register_profile("pyritemq", deadline=None)
settings.load_profile("pyritemq")
