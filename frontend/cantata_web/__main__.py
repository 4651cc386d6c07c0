"""``python -m cantata_web``."""

from cantata_web.app import main

main()
