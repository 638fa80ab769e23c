"""`python -m aforesaid` is the command line."""

from aforesaid.cli import main

main()
