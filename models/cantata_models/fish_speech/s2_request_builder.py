"""Builds S2's stage inputs from requests, in the api process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cantata.contract.data.request import Continuation, StageInput
from cantata_layers.sampling_settings import SamplingSettings
from cantata_models.fish_speech.config import FishConfig, Layout, load_config
from cantata_models.fish_speech.inputs import Spoken, TalkerInput
from cantata_models.fish_speech.pipeline import S2_CODES, TALKER
from cantata_models.fish_speech.prompt import S2Prompts
from cantata_models.fish_speech.request_builder import Defaults, FishRequestBuilder
from cantata_models.fish_speech.request_options import S2Options
from cantata_models.fish_speech.text.tokenizers import S2Tokenizer
from cantata_models.fish_speech.turns import grouped

DEFAULTS = Defaults(SamplingSettings(temperature=0.8, top_k=30, top_p=0.8), penalty=None)


class S2RequestBuilder(FishRequestBuilder[S2Options]):
    """S2's: it speaks a text with several speakers in groups of turns, each behind those that were
    spoken before.

    Args:
        config: of the checkpoint.
        prompts: its own.
    """

    def __init__(self, config: FishConfig, prompts: S2Prompts) -> None:
        super().__init__(config, prompts, S2Options, DEFAULTS)
        self._chat = prompts

    def _groups(self, text: str, options: S2Options) -> tuple[str, ...]:
        return grouped(text, options.chunk_length)

    def _continuation(
        self,
        earlier: Sequence[str],
        talkers: Sequence[TalkerInput],
        inputs: Mapping[str, StageInput],
    ) -> Continuation | None:
        if not earlier:
            return None
        *before, talker = talkers
        end = self._chat.end

        def behind(stated: Sequence[Any]) -> Mapping[str, StageInput]:
            spoken = tuple(
                Spoken(one.tokens[one.spoken_at :], codes.values, end)
                for one, codes in zip(before, stated, strict=True)
            )
            return {**inputs, TALKER: replace(talker, spoken=spoken)}

        return Continuation(tuple(earlier), S2_CODES, behind)


def load_s2_builder(checkpoint: Path) -> S2RequestBuilder:
    """Return the request builder of an S2 checkpoint.

    Raises:
        ConfigError: its configuration or its tokenizer cannot be used.
    """
    config = load_config(checkpoint, Layout.S2)
    return S2RequestBuilder(config, S2Prompts(S2Tokenizer(checkpoint), config.special))
