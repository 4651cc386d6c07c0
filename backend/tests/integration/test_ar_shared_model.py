"""A talker with layers of its own is not shared among devices."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from cantata.config import parse_deployment
from cantata.contract.data.errors import StageDied
from cantata.pipeline.orchestrator import Orchestrator
from process_tree import find_descendants
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.plugin import PIPELINE

pytestmark = pytest.mark.integration


async def test_it_is_refused_with_what_is_valid_and_leaves_no_rank(tmp_path: Path) -> None:
    save_tiny_checkpoint(tmp_path)
    stages = {"talker": {"max_model_len": 128, "tensor_parallel": 2}, "decoder": {}}
    deployment = parse_deployment({"stages": stages}, PIPELINE)
    orchestrator = Orchestrator(PIPELINE, tmp_path, deployment, logging.CRITICAL)
    why = "cannot start: stage 'talker': tensor_parallel 2: its model cannot be shared"
    with pytest.raises(StageDied, match=why):
        await orchestrator.start()
    assert not find_descendants("rank")
