"""How each server under test is started: as a child process, through its public command."""
