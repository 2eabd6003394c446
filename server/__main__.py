"""`python -m pyritemq.server`: the same as the `pyritemq` command."""

from pyritemq.server.cli import main

main(prog_name="pyritemq")
