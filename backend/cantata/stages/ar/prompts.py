"""What a request's prompt means for the engine: limits, sampling, frames that its rows allow."""

from __future__ import annotations

import hashlib
from typing import TypeVar

import torch

from cantata.config import SamplingDefaults
from cantata.contract.data.errors import ContextFull, RequestFailed
from cantata.contract.data.request import SamplingOptions
from cantata.contract.model.embedding_source import TalkerPrompt
from cantata.stages.ar.request_state import LevelSampling, ResolvedSampling

T = TypeVar("T")


def check_prompt(prompt: TalkerPrompt, max_model_len: int) -> None:
    """Check that a prompt can be served.

    Raises:
        ContextFull: it does not fit into the deployment.
        RequestFailed: its lengths contradict each other.
    """
    lengths = {prompt.prompt_len}
    if prompt.positions is not None:
        lengths.add(prompt.positions.shape[1])
    if prompt.token_ids is not None:
        lengths.add(len(prompt.token_ids))
    if len(lengths) > 1:
        raise RequestFailed(f"the talker's prompt has parts of {sorted(lengths)} positions")
    if not 1 <= prompt.prompt_len <= len(prompt.rows) or prompt.max_frames < 1:
        raise RequestFailed(
            f"the talker's prompt has {prompt.prompt_len} positions, {len(prompt.rows)} rows "
            f"and {prompt.max_frames} frames"
        )
    check_positions(prompt.prompt_len + prompt.max_frames, max_model_len)


def check_positions(needed: int, max_model_len: int) -> None:
    """Raises ContextFull if a request needs more positions than there are."""
    if needed > max_model_len:
        raise ContextFull(
            f"the text needs {needed} positions, more than the {max_model_len} of this deployment"
        )


def resolve_sampling(options: SamplingOptions, defaults: SamplingDefaults) -> ResolvedSampling:
    """Fill in the deployment's defaults where the request says nothing."""
    temperature = _or_default(options.temperature, defaults.temperature)
    top_k = _or_default(options.top_k, defaults.top_k)
    top_p = _or_default(options.top_p, defaults.top_p)
    return ResolvedSampling(
        seed=options.seed,
        code_0=LevelSampling(temperature, top_k, top_p),
        residual=LevelSampling(
            _or_default(options.residual_temperature, temperature),
            _or_default(options.residual_top_k, top_k),
            _or_default(options.residual_top_p, top_p),
        ),
        stop=LevelSampling(
            _or_default(options.stop_temperature, temperature),
            _or_default(options.stop_top_k, top_k),
            _or_default(options.stop_top_p, top_p),
        ),
        repetition_penalty=(
            _or_default(options.repetition_penalty, defaults.repetition_penalty),
            _or_default(options.residual_repetition_penalty, 1.0),
        ),
        use_penalty=(options.presence_penalty, options.frequency_penalty),
        logprobs=options.logprobs,
        top_logprobs=options.top_logprobs,
        code_bias=options.code_bias,
    )


def frames_allowed(num_rows: int, prompt_len: int, max_frames: int, *, open: bool) -> int:
    """How many frames this many rows allow: while more rows may come, each frame but the first is
    fed back with a row of its own."""
    return min(max_frames, num_rows - prompt_len + 1) if open else max_frames


def build_salt(prompt: TalkerPrompt) -> str:
    """A hash of what the prefilled positions hold.

    WHY: vLLM identifies a prompt by its token ids, and placeholders are all equal.
    """
    rows = prompt.rows[: prompt.prompt_len].to(dtype=torch.float32, device="cpu").contiguous()
    return hashlib.sha256(rows.numpy().tobytes()).hexdigest()


def _or_default(value: T | None, default: T) -> T:
    return default if value is None else value
