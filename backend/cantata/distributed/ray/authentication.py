"""Who may use the cluster. Anyone who reaches a Ray without tokens can run code on all its
machines, so nothing is served on such a Ray."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path

from cantata.contract.data.errors import ConfigError

MODE, TOKEN, TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_DEFAULT_FILE = Path(".ray") / "auth_token"
_PURPOSE = b"cantata links"


def check_authentication(environment: Mapping[str, str], where: str) -> None:
    """Check that a process of Ray's, or one that connects to it, has token authentication.

    Args:
        where: which process that is.

    Raises:
        ConfigError: it has none; says how to start Ray instead.
    """
    mode = environment.get(MODE, "")
    if mode.lower() != "token":
        raise ConfigError(
            f"{where}: Ray runs without token authentication ({MODE} is {mode!r}), so anyone "
            f"who reaches it can run code on the whole cluster. Make a token with `ray "
            f"get-auth-token --generate`, copy it to every machine, and set {MODE}=token for every "
            "`ray start` and for this command"
        )


def derive_link_secret(environment: Mapping[str, str], home: Path) -> bytes:
    """The secret of the links between edges and replicas, derived from Ray's token.

    Every machine of the cluster has the token, so the secret is neither sent nor stored, and it
    stays the same across an upgrade. It does not reveal the token.

    Args:
        home: the user's folder, where Ray's token is unless the environment names it.

    Returns:
        32 bytes.

    Raises:
        ConfigError: the token cannot be read.
    """
    token = environment.get(TOKEN) or _read(
        Path(environment.get(TOKEN_PATH) or home / _DEFAULT_FILE)
    )
    return hmac.digest(token.encode(), _PURPOSE, hashlib.sha256)


def _read(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: Ray's token cannot be read; set {TOKEN} or {TOKEN_PATH}"
        ) from error
    if not token:
        raise ConfigError(f"{path}: Ray's token is empty")
    return token
