"""POP consumption: the broker hands out messages and remembers which of them are not acked yet."""
