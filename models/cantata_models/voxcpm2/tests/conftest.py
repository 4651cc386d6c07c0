"""What several files load once."""

from __future__ import annotations

from cantata_models.voxcpm2.tests.stage_driver import VoxCpm2Checkpoints
from model_engines import checkpoints_fixture

checkpoints = checkpoints_fixture(VoxCpm2Checkpoints)
