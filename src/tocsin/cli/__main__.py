"""`python -m tocsin.cli` is the command `tocsin`."""

from tocsin.cli import main

main()
