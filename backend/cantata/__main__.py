"""`python -m cantata`."""

from cantata.cli import main

main()
