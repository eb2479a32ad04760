"""`python -m dealer` is `dealer`, if the script is not installed."""

from dealer.cli.main import main

main()
