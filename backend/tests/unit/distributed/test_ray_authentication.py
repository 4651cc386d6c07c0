"""No cluster without a token; the links' secret follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata.contract.data.errors import ConfigError
from cantata.distributed.ray.authentication import check_authentication, derive_link_secret


@pytest.mark.parametrize("environment", [{}, {"RAY_AUTH_MODE": ""}, {"RAY_AUTH_MODE": "disabled"}])
def test_ray_without_a_token_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"here: .*RAY_AUTH_MODE=token"):
        check_authentication(environment, "here")


@pytest.mark.parametrize("mode", ["token", "TOKEN"])
def test_ray_with_a_token_is_not(mode: str) -> None:
    check_authentication({"RAY_AUTH_MODE": mode}, "here")


def test_the_secret_is_the_same_wherever_the_token_is(tmp_path: Path) -> None:
    file = tmp_path / ".ray" / "auth_token"
    file.parent.mkdir()
    file.write_text("abc\n")
    secret = derive_link_secret({"RAY_AUTH_TOKEN": "abc"}, Path("/nowhere"))
    assert len(secret) == 32
    assert b"abc" not in secret
    assert derive_link_secret({}, tmp_path) == secret
    assert derive_link_secret({"RAY_AUTH_TOKEN_PATH": str(file)}, Path("/nowhere")) == secret
    assert derive_link_secret({"RAY_AUTH_TOKEN": "abd"}, tmp_path) != secret


def test_a_token_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"auth_token: Ray's token cannot be read"):
        derive_link_secret({}, tmp_path)
    empty = tmp_path / "empty"
    empty.write_text("\n")
    with pytest.raises(ConfigError, match="empty: Ray's token is empty"):
        derive_link_secret({"RAY_AUTH_TOKEN_PATH": str(empty)}, tmp_path)
