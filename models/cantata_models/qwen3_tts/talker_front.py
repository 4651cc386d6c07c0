"""The talker but for its backbone: from prompts to rows, from hidden states to frames.

Letters: N rows, R requests, D hidden size, V codes in codebook 0, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.data.chunks import Codes, Rows
from cantata.contract.model.embedding_source import (
    DeferredRows,
    EmbeddingSource,
    StaticEmbeddings,
    StreamingEmbeddings,
    TalkerPrompt,
)
from cantata.contract.model.row_products import RowLinear
from cantata.contract.model.upload import upload
from cantata_layers.code_predictor import CodePredictor, predictor_names
from cantata_layers.talker_parts import PredictedFrames, Projection, frame_limit
from cantata_layers.weights import WeightMap
from cantata_models.qwen3_tts.config import (
    FRAME_PERIOD_S,
    MIN_FRAMES,
    RESERVED_CODES,
    Qwen3TtsConfig,
)
from cantata_models.qwen3_tts.prompt import (
    FIRST_REFERENCE_FRAME,
    NONE,
    SPEAKER,
    LaterText,
    PromptRows,
    Qwen3TtsPromptBuilder,
    Qwen3TtsTalkerInput,
)

NAMES = WeightMap(
    {
        **predictor_names("talker."),
        "talker.codec_head.{}": "codec_head.{}",
        "talker.text_projection.{}": "text_projection.{}",
        "talker.model.{}": "{}",
        "talker.{}": "{}",
    }
)
ROW_BLOCK = 16
"""Rows of text projected at a time.

WHY: the order of summation in matrix libraries depends on the number of rows. A token must get the
same row whether it comes alone, late, or with its whole text.
"""


@dataclass(frozen=True, slots=True)
class EncodedRecording:
    """What the encoder stage made of a recording."""

    speaker: torch.Tensor
    """[1, D] float32."""
    frames: torch.Tensor
    """[T, Q] int64: those that the talker continues, if any."""


class Qwen3TalkerFront(PredictedFrames, nn.Module):
    """What the served and the plain talker share.

    Args:
        config: of the checkpoint.
        max_positions: of a request.
    """

    frame_period_s = FRAME_PERIOD_S

    def __init__(self, config: Qwen3TtsConfig, max_positions: int) -> None:
        super().__init__()
        talker = config.talker
        self._config, self._max_positions = config, max_positions
        self._prompts = Qwen3TtsPromptBuilder(config.codec, config.text)
        self.num_codebooks = config.num_codebooks
        self.end_code: int | None = config.codec.eos
        self.text_embedding = nn.Embedding(config.text_vocab_size, config.text_hidden_size)
        self.text_projection = Projection(
            config.text_hidden_size, config.text_hidden_size, talker.hidden_size
        )
        self.codec_embedding = nn.Embedding(talker.vocab_size, talker.hidden_size)
        self.codec_head = RowLinear(talker.hidden_size, talker.vocab_size, bias=False)
        self.code_predictor = CodePredictor(
            config.predictor, talker.hidden_size, config.num_codebooks
        )
        self.suppressed: torch.Tensor
        self.register_buffer("suppressed", _mask_suppressed_codes(config), persistent=False)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]; the end code is the only control code that can be chosen."""
        scores: torch.Tensor = self.codec_head(hidden_states)
        return scores.masked_fill(self.suppressed, -torch.inf)

    def open(self, inputs: Qwen3TtsTalkerInput) -> EmbeddingSource:
        """Lay out the prompt and embed its rows, once its recording is encoded if it follows one.

        Raises:
            InvalidRequest: the prompt leaves no room for audio.
        """
        if not inputs.follows_recording:
            return self._begin(inputs, None)

        def begin(encoded: Sequence[Any]) -> EmbeddingSource:
            speaker, frames = (torch.from_numpy(payload.values) for payload in encoded)
            return self._begin(inputs, EncodedRecording(speaker, frames.long()))

        return DeferredRows((Rows, Codes), begin)

    def _begin(
        self, inputs: Qwen3TtsTalkerInput, recording: EncodedRecording | None
    ) -> EmbeddingSource:
        spoken = inputs.spoken
        continued = recording is not None and len(recording.frames) > 0
        layout = self._prompts.build(
            spoken,
            language=inputs.language,
            speaker=inputs.speaker if recording is None else SPEAKER,
            reference_frames=0 if recording is None else len(recording.frames),
            streamed=inputs.streamed,
        )
        prompt = TalkerPrompt(
            rows=self._embed(layout, recording),
            prompt_len=layout.prompt_len,
            max_frames=frame_limit(
                layout.prompt_len,
                self._max_positions,
                inputs.max_frames,
                self._config.generation.max_new_tokens - 1,
                least=MIN_FRAMES,
            ),
            min_frames=MIN_FRAMES,
            context=recording.frames if recording is not None and continued else None,
            sampling=inputs.sampling,
        )
        return (
            StaticEmbeddings(prompt)
            if spoken.complete
            else StreamingEmbeddings(prompt, self._build_later_rows)
        )

    def _build_later_rows(self, text: LaterText) -> torch.Tensor:
        """Return rows for text that arrived after its request started."""
        layout = self._prompts.text_rows(text.body, complete=text.complete)
        return self._embed(layout, None)

    def _embed(self, layout: PromptRows, recording: EncodedRecording | None) -> torch.Tensor:
        """Return the rows of a layout, [L, D].

        WHY places that the host finds: by masks on a GPU, it would wait for how many there are.
        """
        weight, placed = self.codec_embedding.weight, _place(layout)
        sizes = [len(part) for part in placed]
        there = upload(torch.tensor([x for part in placed for x in part]), weight.device)
        text, text_at, codes, codes_at, speaker_at, frames_at = torch.split(there, sizes)
        rows = weight.new_zeros(len(layout.text), weight.shape[1])
        rows[text_at] = self._project(text)
        rows[codes_at] += self.codec_embedding(codes)
        if recording is not None:
            rows[speaker_at] += upload(recording.speaker, weight.device).to(rows)
            if sizes[-1]:
                rows[frames_at] += self.embed_frames(upload(recording.frames, weight.device))
        return rows

    def _project(self, text: torch.Tensor) -> torch.Tensor:
        """[L] tokens -> [L, D]."""
        padded = functional.pad(text, (0, -len(text) % ROW_BLOCK))
        blocks = self.text_embedding(padded).split(ROW_BLOCK)
        return torch.cat([self.text_projection(block) for block in blocks])[: len(text)]


def _place(layout: PromptRows) -> tuple[list[int], ...]:
    """Text tokens and their rows, codes and theirs, the speaker's rows, the reference frames'."""
    text_at = [row for row, token in enumerate(layout.text) if token != NONE]
    codes_at = [row for row, code in enumerate(layout.codes) if code >= 0]
    return (
        [layout.text[row] for row in text_at],
        text_at,
        [layout.codes[row] for row in codes_at],
        codes_at,
        [row for row, code in enumerate(layout.codes) if code == SPEAKER],
        [row for row, code in enumerate(layout.codes) if code <= FIRST_REFERENCE_FRAME],
    )


def _mask_suppressed_codes(config: Qwen3TtsConfig) -> torch.Tensor:
    """[V] bool: codes that are never chosen."""
    codes = torch.arange(config.talker.vocab_size)
    return (codes >= config.talker.vocab_size - RESERVED_CODES) & (codes != config.codec.eos)
