"""How a stage's process is made."""

from __future__ import annotations

import tempfile

import pytest

from cantata.config import CodecDeployment
from cantata.pipeline.spawning import forks


@pytest.mark.parametrize(("length", "forked"), [(40, True), (75, True), (76, False), (200, False)])
def test_a_temporary_folder_too_long_for_a_socket_forks_nothing(
    monkeypatch: pytest.MonkeyPatch, length: int, forked: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/".ljust(length, "a"))
    assert forks(CodecDeployment()) == forked


def test_a_stage_on_a_gpu_is_never_forked() -> None:
    assert not forks(CodecDeployment(device="cuda"))
