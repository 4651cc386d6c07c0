"""Exit with 0 when the server accepts requests: healthcheck.py URL-OF-READY

Needs nothing but Python, since the image has no curl. The answer needs no API key.
"""

from __future__ import annotations

import sys
from urllib.error import URLError
from urllib.request import urlopen

if __name__ == "__main__":
    try:
        with urlopen(sys.argv[1], timeout=5) as answer:
            print(answer.read().decode())
    except URLError as error:  # also an answer such as 503
        sys.exit(f"{sys.argv[1]}: {error}")
