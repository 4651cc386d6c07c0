"""`cantata deploy` for a test that does not wait ten minutes until a replica is one too many:
python -m e2e.cluster.impatient_deploy FILE MODEL"""

from __future__ import annotations

import sys
from pathlib import Path

from cantata.deploy.serve_config import DeployOptions, deploy
from cantata.distributed.ray import serve_api

DOWN_AFTER_S = 5.0

if __name__ == "__main__":
    serve_api.DOWN_AFTER_S = DOWN_AFTER_S  # type: ignore[attr-defined]
    deploy(DeployOptions(files=[Path(sys.argv[1])], models=sys.argv[2:], no_auth=True), print)
