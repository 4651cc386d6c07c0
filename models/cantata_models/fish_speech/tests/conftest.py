"""What several files load once."""

from __future__ import annotations

from cantata_models.fish_speech.tests.talker_driver import FishTalkers
from model_engines import checkpoints_fixture

talkers = checkpoints_fixture(FishTalkers)
