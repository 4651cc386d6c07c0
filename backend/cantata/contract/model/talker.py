"""What an AR stage requires of a model's talker, in addition to vLLM's model interface.

The engine keeps, per request, the conditioning rows and the history of frames; the model is a set
of pure functions over rows, and says where a request's rows come from. Position p of a request has
the input row

    rows[p]                                    for p < prompt_len
    rows[p] + embed_frames(frame[p - prompt_len])   for p >= prompt_len

(rows beyond the given ones repeat the last, or are waited for while the source is open), and the
hidden state at position prompt_len - 1 + k yields frame k. A frame is [Q] codes; its code 0 is what
vLLM samples from `compute_logits`. The frame of a `LatentTalker` is a vector, and vLLM samples no
more than whether to go on.

Letters: N rows, R requests of this step, D hidden size, V codes in codebook 0, Q codebooks, F
frames, E columns, Z noise of a frame, A axes, W columns of a wide row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from cantata.contract.model.embedding_source import EmbeddingSource
from cantata.contract.model.sampling import CodeSampling, penalize_repetition, sample_codes

SAFE_MIN_ROWS = 8
"""From this number of rows on, vLLM's matrix products are exact per row in float32 on a CPU.

WHY: for one row of more than a thousand values oneDNN takes a kernel that adds in another order
(AVX-512), and a request would sound different alone and in a batch. Products outside vLLM's layers
are exact for any number of rows with `contract.model.row_products`; torch's own are not, see there.
"""


@dataclass(frozen=True, slots=True)
class RepetitionPenalty:
    """A penalty on the codes that a request has spoken, each in its own codebook."""

    spoken: torch.Tensor
    """[R, F, Q] int64: each request's frames so far, padded with -1."""
    penalty: torch.Tensor
    """[R] float32; 1 changes nothing."""


@dataclass(frozen=True, slots=True)
class FrameDraws:
    """This step's random numbers, and how to draw the codes after code 0, per request.

    Uniform numbers depend only on (seed, frame, codebook), so neither batching nor preemption
    can change them.
    """

    uniforms: torch.Tensor
    """[R, Q or more] float32 in [0, 1)."""
    sampling: CodeSampling
    is_sampled: bool
    """False: every request is greedy."""
    repetition: RepetitionPenalty | None = None
    """None: no request is penalized for codes after code 0."""
    noise: torch.Tensor | None = None
    """[R, Z] float32, for a `LatentTalker`: the noise that each request's frame begins with."""
    previous: torch.Tensor | None = None
    """[R, E] float32, for a `LatentTalker`: each request's previous frame; for its first frame, the
    last one of its context, or zeros."""
    options: torch.Tensor | None = None
    """[R, O] float32, for a `FrameOptions` talker: each request's numbers. Padding rows are
    zeros."""
    steps: tuple[int, ...] | None = None
    """[R] on the host, for a `SteppedTalker`: each request's steps. Padding rows are 0."""

    def choose(self, scores: torch.Tensor, codebook: int) -> torch.Tensor:
        """[R, V] scores of a codebook after the first -> [R] int64 codes."""
        if self.repetition is not None:
            spoken, penalty = self.repetition.spoken[:, :, codebook], self.repetition.penalty
            scores = penalize_repetition(scores.float(), spoken, penalty)
        if not self.is_sampled:
            return scores.argmax(dim=-1)
        return sample_codes(scores.float(), self.uniforms[:, codebook], self.sampling)


class Talker(Protocol):
    """The model class of an AR stage: a vLLM model with these additional methods.

    vLLM needs `__init__(*, vllm_config, prefix="")`, `forward(input_ids, positions,
    intermediate_tensors=None, inputs_embeds=None)`, which gets [N, D] rows as `inputs_embeds`
    and no ids, and `compute_logits(hidden)`, which returns [R, V] scores of code 0.
    """

    num_codebooks: int
    """Q, the number of codebooks."""
    frame_period_s: float | None
    """Seconds of sound in one frame. None: its frames are not heard, such as a thinker's tokens."""
    end_code: int | None
    """The code 0 that ends a request and is not spoken. None: only lengths end requests."""
    min_rows: int
    """Least number of rows in all its products, padded with zeros, so that a row's float32 result
    does not depend on other rows. `SAFE_MIN_ROWS` for products of vLLM's layers, 1 if all are exact
    for any number."""

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """The transformers config that vLLM and the model's layers read, made from the checkpoint's
        own.

        Needed are hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads,
        head_dim, vocab_size (V) and max_position_embeddings; whatever else the layers read (for
        Qwen3's: intermediate_size, hidden_act, rms_norm_eps, rope_parameters) is passed on.

        Raises:
            ConfigError: the folder holds no such checkpoint.
        """
        ...

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Fill the parameters from the checkpoint's folder.

        Raises:
            ConfigError: a tensor is missing or has another shape.
        """
        ...

    def open(self, inputs: Any) -> EmbeddingSource:
        """The source of a new request's rows: one of `contract.model.row_source`, or the model's
        own.

        Args:
            inputs: the stage input that the request builder made; None where everything comes on
                edges.

        Raises:
            CantataError: it cannot be spoken.
        """
        ...

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] int64 codes -> [N, D] rows."""
        ...

    def complete_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] hidden states and [R] int64 sampled first codes -> [R, Q] int64 frames.

        A row's frame depends on that row alone. The first code may be `end_code`; such a row's
        frame is neither spoken nor embedded. Where several codes end speech, the talker puts
        `end_code` in the place of the others. The rows are those of the last `compute_logits`, so
        what that has computed may be kept for this.
        """
        ...


@runtime_checkable
class PublishedConfig(Protocol):
    """A talker's class whose network is vLLM's own, so it reads the checkpoint's own config."""

    @classmethod
    def vllm_config(cls, checkpoint: Path) -> Any:
        """The transformers config (a `PretrainedConfig`) as vLLM reads it. It has the fields of
        `Talker.vllm_config_fields`, or other names for them that vLLM knows.

        Raises:
            ConfigError: vLLM cannot read it, or does not run such a network here.
        """
        ...


@runtime_checkable
class RecordableTalker(Protocol):
    """A talker whose completion of frames can be recorded and replayed (a CUDA graph)."""

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """Like `complete_frames`, but computed from the arguments only. It launches the same
        kernels whatever the values are, so it reads none of them on the host. For a
        `SteppedTalker`, all rows have the same number of steps here, and the kernels may depend on
        it; what it makes on the host for that number is kept from the first call on."""
        ...


@runtime_checkable
class RowExporter(Protocol):
    """A talker whose hidden states leave the stage, for a pipeline with the port `rows`.

    Each position's row leaves once, in order, prompts too.
    """

    export_width: int
    """E, the width of the exported rows."""

    def export_rows(self, hidden: torch.Tensor) -> torch.Tensor:
        """[N, D] hidden states of a forward pass -> [N, E]. Part of that pass: it may be captured
        in a graph."""
        ...


@runtime_checkable
class PenalizedPrompt(Protocol):
    """A talker whose repetition penalty counts more than the codes that were spoken."""

    prompt_codes: tuple[int, ...]
    """Codes 0 that count as spoken from the first frame on, such as those that stand for a prompt
    in the published program."""


@dataclass(frozen=True, slots=True)
class SamplerInputs:
    """The input of a `FirstCodebookSampler` for drawing this step's codes 0, per request."""

    uniforms: torch.Tensor
    """[R, 1 + law_draws] float32 in [0, 1): code 0's own number, then the law's."""
    sampling: CodeSampling
    is_sampled: bool
    """False: every request is greedy."""
    recent: torch.Tensor
    """[R, history_frames, Q] int64: the last frames, newest last; -1 before a request's first."""
    penalty: torch.Tensor
    """[R] float32: the repetition penalty of code 0; 1 changes nothing."""


@runtime_checkable
class FirstCodebookSampler(Protocol):
    """A talker that draws code 0 by a law of its own, instead of `sample_codes` and the penalties.
    Only for a talker without a `StopDecision`."""

    law_draws: int
    """Random numbers that it needs for each frame, beyond one per codebook."""
    history_frames: int
    """Number of last frames that it looks at."""

    def draw_first(self, scores: torch.Tensor, draws: SamplerInputs) -> torch.Tensor:
        """[R, V] float32 scores of code 0 -> [R] int64. A row's code depends on that row alone."""
        ...


@runtime_checkable
class StopDecision(Protocol):
    """A talker that decides whether to stop before it draws code 0, by other scores.

    Its `end_code` is one more than codebook 0's last code. It has no score, but vLLM's vocab_size
    counts it. The engine puts it in the place of code 0 where the decision is to stop.
    """

    def stop_scores(self) -> torch.Tensor:
        """[R, 2] scores of continuing and of stopping, for the rows of the last
        `compute_logits`."""
        ...


@runtime_checkable
class RotaryAxes(Protocol):
    """A talker whose positions have more than one dimension (M-RoPE): `forward` gets positions [A,
    N] in float32."""

    rotary_axes: int
    """A, the number of axes."""


@runtime_checkable
class DeepstackEmbeddings(Protocol):
    """A talker whose input rows are wider than its hidden states because they carry more than its
    first layer takes: `forward` gets rows [N, W]. Frames that are fed back are added to the first
    columns, as many as `embed_frames` returns."""

    row_width: int
    """W, the width of an input row, such as D columns for each of the first layers (DeepStack)."""


@runtime_checkable
class LatentTalker(Protocol):
    """A talker whose frames are vectors, for a pipeline with the port `latents`.

    It has one codebook of two codes: 0 goes on, 1 is its `end_code`. `embed_frames` takes [N, E]
    float32 frames, and `complete_frames` returns [R, E]. It chooses no codes: of `FrameDraws` it
    uses `noise`, `previous`, `options` and `steps`.
    """

    latent_size: int
    """E, the size of a frame."""
    noise_size: int
    """Z, the size of a frame's noise."""

    def draw_noise(self, seed: int, num_frames: int) -> torch.Tensor:
        """[F, Z] float32 on the CPU: the noise that the frames of a request with this seed begin
        with. The first frames' noise does not depend on F."""
        ...


@runtime_checkable
class FrameOptions(Protocol):
    """A talker whose frames depend on numbers of each request's own, such as its guidance:
    `complete_frames` gets them in `FrameDraws.options`."""

    num_frame_options: int
    """O, the length of each `TalkerPrompt.frame_options`."""


@runtime_checkable
class SteppedTalker(Protocol):
    """A `LatentTalker` whose frames take a number of steps of each request's own, such as a
    solver's: `complete_frames` gets them in `FrameDraws.steps`, from `TalkerPrompt.frame_steps`."""

    usual_steps: tuple[int, ...]
    """If the talker is a `RecordableTalker`, its completion is recorded for these numbers of
    steps."""


@runtime_checkable
class EosFrameIsAudio(Protocol):
    """A talker whose last frame is spoken although its code 0 is `end_code`: the code means that no
    frame follows."""

    speaks_end: bool
    """Whether this talker speaks its last frame."""
