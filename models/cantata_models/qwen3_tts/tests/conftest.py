"""What several files load once."""

from __future__ import annotations

from cantata_models.qwen3_tts.tests.talker_driver import Qwen3TtsTalkers
from model_engines import checkpoints_fixture

talkers = checkpoints_fixture(Qwen3TtsTalkers)
