"""How each server under test is started: always as a child process, always through its public command."""
