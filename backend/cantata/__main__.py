"""`python -m cantata`."""

from cantata.cli.app import main

main()
