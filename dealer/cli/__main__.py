"""`python -m dealer.cli` is `dealer`, where no script was installed."""

from dealer.cli.commands import main

main()
