"""The tiny talker in a process whose wall clock jumps."""

from __future__ import annotations

from vllm.config import VllmConfig

from tiny_talker.faulty import let_the_clock_jump
from tiny_talker.talker import TinyTalker


class JumpyTalker(TinyTalker):
    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        let_the_clock_jump()
        super().__init__(vllm_config=vllm_config, prefix=prefix)
