"""What an AR stage requires of a model's talker, in addition to vLLM's model interface.

The engine keeps, per request, the conditioning rows and the history of frames; the model is a set
of pure functions over rows, and says where a request's rows come from. Position p of a request has
the input row

    rows[p]                                    for p < prompt_len
    rows[p] + embed_frames(frame[p - prompt_len])   for p >= prompt_len

(rows beyond the given ones repeat the last, or are waited for while the source is open), and the
hidden state at position prompt_len - 1 + k yields frame k. A frame is [Q] codes; its code 0 is what
vLLM samples from `compute_logits`. With `latent_size`, a frame is a vector of
that many columns, and vLLM samples no more than whether to go on.

Letters: N rows, R requests of this step, D hidden size, V codes in codebook 0, Q codebooks, F
frames, E columns, Z noise of a frame, A axes, W columns of a wide row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cantata.contract.model.embedding_source import EmbeddingSource
from cantata.contract.model.sampling import CodeSampling, penalize_repetition, sample_codes

if TYPE_CHECKING:
    from transformers import PretrainedConfig

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
    """[R, Z] float32, for a talker of latents: the noise that each request's frame begins with."""
    previous: torch.Tensor | None = None
    """[R, E] float32, for a talker of latents: each request's previous frame; for its first frame,
    the last one of its context, or zeros."""
    options: torch.Tensor | None = None
    """[R, O] float32, if there are `num_frame_options`: each request's numbers. Padding rows are
    zeros."""
    steps: tuple[int, ...] | None = None
    """[R] on the host, if there are `usual_steps`: each request's steps. Padding rows are 0."""

    def choose(self, scores: torch.Tensor, codebook: int) -> torch.Tensor:
        """[R, V] scores of a codebook after the first -> [R] int64 codes."""
        if self.repetition is not None:
            spoken, penalty = self.repetition.spoken[:, :, codebook], self.repetition.penalty
            scores = penalize_repetition(scores.float(), spoken, penalty)
        if not self.is_sampled:
            return scores.argmax(dim=-1)
        return sample_codes(scores, self.uniforms[:, codebook], self.sampling)


@dataclass(frozen=True, slots=True)
class SamplerInputs:
    """What `Talker.draw_first` draws this step's codes 0 from, per request."""

    uniforms: torch.Tensor
    """[R, 1 + law_draws] float32 in [0, 1): code 0's own number, then the law's."""
    sampling: CodeSampling
    is_sampled: bool
    """False: every request is greedy."""
    recent: torch.Tensor
    """[R, history_frames, Q] int64: the last frames, newest last; -1 before a request's first."""
    penalty: torch.Tensor
    """[R] float32: the repetition penalty of code 0; 1 changes nothing."""


class Talker:
    """The base class of an AR stage's model: a vLLM model class with these additional methods.

    vLLM needs `__init__(*, vllm_config, prefix="")`, `forward(input_ids, positions,
    intermediate_tensors=None, inputs_embeds=None)`, which gets [N, D] rows as `inputs_embeds`
    and no ids, and `compute_logits(hidden)`, which returns [R, V] scores of code 0.

    A model sets the first attributes and implements the methods up to `make_frames`. What follows
    is optional: each default is a talker without it.
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

    shardable: bool = False
    """Several devices can share its layers (tensor parallel): all of them are vLLM's, and
    `load_checkpoint` gives each process its share, as vLLM's weight loaders do. What is not sharded
    computes the same on every device."""
    recordable: bool = False
    """`make_frames` can be recorded and replayed (a CUDA graph): it launches the same kernels
    whatever the values are, so it reads none of them on the host. With `usual_steps`, all rows have
    the same number of steps there, and the kernels may depend on it; what is made on the host for
    that number is kept from the first call on."""
    records_forward: bool = True
    """`forward`, with `export_rows`, can be recorded and replayed too: between two calls nothing
    changes but the values of its inputs, and it reads none of them on the host."""
    penalizes_residual: bool = False
    """Requests may have a repetition penalty for the codes after the first
    (`SamplingOptions.residual_repetition_penalty`), so that steps with one are recorded, too."""
    prompt_codes: tuple[int, ...] = ()
    """Codes 0 that the repetition penalty counts as spoken from the first frame on, such as those
    that stand for a prompt in the published program."""
    rotary_axes: int = 0
    """A, the axes of a position (M-RoPE): `forward` gets positions [A, N] in float32. 0: they are
    counted."""
    row_width: int = 0
    """W, if input rows carry more than the first layer takes, such as D columns for each of the
    first layers (DeepStack): `forward` gets rows [N, W]. Frames that are fed back are added to the
    first columns, as many as `embed_frames` returns. 0: D."""
    export_width: int = 0
    """E, the width of the rows that leave the stage, for a pipeline with the port `rows`. Each
    position's row leaves once, in order, prompts too. 0: none leave."""
    latent_size: int = 0
    """E, the size of a frame that is a vector, for a pipeline with the port `latents`.

    There is one codebook of two codes then: 0 goes on, 1 is the `end_code`. `embed_frames` takes
    [N, E] float32 frames, and `complete_frames` returns [R, E]. It chooses no codes: of
    `FrameDraws` it uses `noise`, `previous`, `options` and `steps`. 0: frames are codes."""
    noise_size: int = 0
    """Z, the size of such a frame's noise."""
    num_frame_options: int = 0
    """O, the length of each `TalkerPrompt.frame_options`: numbers of each request's own that its
    frames depend on, such as its guidance. `complete_frames` gets them in `FrameDraws.options`."""
    usual_steps: tuple[int, ...] = ()
    """The numbers of steps, such as a solver's, for which the completion of latents is recorded.
    Each request has a number of its own (`TalkerPrompt.frame_steps`), which `complete_frames` gets
    in `FrameDraws.steps`. Empty: frames take no steps."""
    speaks_end: bool = False
    """The frame whose code 0 is `end_code` is spoken too: the code means that no frame follows."""
    decides_stop: bool = False
    """Whether to stop is decided before code 0 is drawn, by `stop_scores`.

    The `end_code` is one more than codebook 0's last code. It has no score, but vLLM's vocab_size
    counts it. The engine puts it in the place of code 0 where the decision is to stop."""
    law_draws: int | None = None
    """Code 0 is drawn by a law of the talker's own (`draw_first`), instead of `sample_codes` and
    the penalties, with this many random numbers for each frame beyond one per codebook. None: it is
    not; so in a talker that `decides_stop`."""
    history_frames: int = 0
    """The number of last frames that the law looks at."""

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
        raise NotImplementedError

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Fill the parameters from the checkpoint's folder. Raises ConfigError: a tensor is missing
        or has another shape."""
        raise NotImplementedError

    def open(self, inputs: Any) -> EmbeddingSource:
        """The source of a new request's rows: one of `contract.model.embedding_source`, or the
        model's own.

        Args:
            inputs: the stage input that the request builder made; None where everything comes on
                edges.

        Raises:
            CantataError: it cannot be spoken.
        """
        raise NotImplementedError

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] int64 codes -> [N, D] rows."""
        raise NotImplementedError

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] hidden states and [R] int64 sampled first codes -> [R, Q] int64 frames.

        A row's frame depends on that row of the arguments alone. The first code may be `end_code`;
        such a row's frame is neither spoken nor embedded. Where several codes end speech, the
        talker puts `end_code` in the place of the others.
        """
        raise NotImplementedError

    def complete_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """Like `make_frames`, for the rows of the last `compute_logits`. A talker that has kept
        something of those for its frames overrides this."""
        return self.make_frames(hidden, code0, draws)

    @classmethod
    def vllm_config(cls, checkpoint: Path) -> PretrainedConfig:
        """The config as vLLM reads it. A talker whose network is vLLM's own returns the
        checkpoint's; it has the fields of `vllm_config_fields`, or other names for them that vLLM
        knows.

        Raises:
            ConfigError: vLLM cannot read it, or does not run such a network here.
        """
        from transformers import PretrainedConfig

        return PretrainedConfig(**cls.vllm_config_fields(checkpoint))

    def export_rows(self, hidden: torch.Tensor) -> torch.Tensor:
        """[N, D] hidden states of a forward pass -> [N, `export_width`]. Part of that pass: it may
        be captured in a graph."""
        raise NotImplementedError

    def draw_noise(self, seed: int, num_frames: int) -> torch.Tensor:
        """[F, Z] float32 on the CPU: the noise that the frames of a request with this seed begin
        with. The first frames' noise does not depend on F."""
        raise NotImplementedError

    def stop_scores(self) -> torch.Tensor:
        """[R, 2] scores of continuing and of stopping, for the rows of the last
        `compute_logits`."""
        raise NotImplementedError

    def draw_first(self, scores: torch.Tensor, draws: SamplerInputs) -> torch.Tensor:
        """[R, V] float32 scores of code 0 -> [R] int64. A row's code depends on that row alone."""
        raise NotImplementedError
