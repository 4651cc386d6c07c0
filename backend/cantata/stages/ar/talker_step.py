"""One engine step's tensor code, the same under both of vLLM's model runners.

Before the forward pass: the input row of every scheduled position. After it: code 0 of every
request, the rest of its frame, and the frame's place in the history.

Letters: N positions of this step, R requests of this step, D hidden size, V codes, Q codebooks, E
columns of latents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.model.sampling import (
    CodeSampling,
    penalize_repetition,
    penalize_use,
    sample_codes,
)
from cantata.contract.model.talker import FrameDraws, RepetitionPenalty, SamplerInputs, Talker
from cantata.contract.model.upload import upload
from cantata.stages.ar.recorded_frames import RecordedFrames, record_embedding
from cantata.stages.ar.request_state import CODE_0, RESIDUAL, STOP, Layout, RequestStates
from cantata.stages.ar.sampling import (
    CodeLogprobs,
    add_bias,
    hold_to_guides,
    list_logprobs,
)
from cantata.stages.ar.step_indices import ScheduledRows, StepIndices
from cantata.stages.common.device import Download
from cantata.stages.common.graphs import RowGraphs


class ServedTalker(Talker):
    """A talker as the engine has registered it with vLLM."""

    talker_step: TalkerStep
    sampled_hidden: torch.Tensor
    """[R', D]: the hidden states of the last `compute_logits`, padded to R' = max(R, min_rows)."""
    exported: torch.Tensor
    """[N or more, E]: what leaves of the last forward pass; only with `export_width`."""


def get_layout(talker: Talker) -> Layout:
    """What the engine keeps for a talker's positions and frames."""
    layout = Layout(
        columns=talker.num_codebooks,
        dtype=torch.int64,
        num_draws=talker.num_codebooks + (talker.law_draws or 0) + talker.decides_stop,
        row_width=talker.row_width or None,
        rotary_axes=talker.rotary_axes,
        num_options=talker.num_frame_options,
        is_stepped=bool(talker.usual_steps),
    )
    if not talker.latent_size:
        return layout
    return replace(
        layout,
        columns=talker.latent_size,
        dtype=torch.float32,
        noise_size=talker.noise_size,
        draw_noise=talker.draw_noise,
    )


def pad_rows(rows: torch.Tensor, min_rows: int) -> torch.Tensor:
    """[N, ...] -> [max(N, min_rows), ...], filled up with zeros."""
    missing = min_rows - rows.shape[0]
    if missing <= 0:
        return rows
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])])


@dataclass(frozen=True, slots=True)
class LeavingRows:
    """Rows of a step on their way to the host, while its frames are still being made."""

    slots: NDArray[np.int64]
    """[R]"""
    counts: NDArray[np.int64]
    """[R]: rows of each request, one after the other."""
    download: Download
    """[sum of `counts`, E] float32."""

    def by_slot(self) -> dict[int, NDArray[np.float32]]:
        """Each request's rows, if it has any; waits until they are on the host."""
        parts = np.split(self.download.wait().numpy(), np.cumsum(self.counts)[:-1])
        named = zip(self.slots.tolist(), parts, strict=True)
        return {slot: part for slot, part in named if len(part)}


class TalkerStep:
    """Turns scheduled positions into input rows and sampled hidden states into frames."""

    def __init__(self, talker: ServedTalker, states: RequestStates) -> None:
        self.states = states
        self._talker = talker
        self._makes_latents = bool(talker.latent_size)
        prompt_codes = torch.tensor(talker.prompt_codes, dtype=torch.int64)
        self._prompt_codes = prompt_codes.to(states.frames.device)
        self._indices: StepIndices | None = None
        self._recorded: RecordedFrames | None = None
        self._recorded_embedding: RowGraphs | None = None
        self._exports_rows = False
        self._leaving: LeavingRows | None = None
        """What the last step made, and was not taken yet."""
        self._logprobs: dict[int, CodeLogprobs] = {}
        """By slot, of the last step's codes 0 whose requests ask for them."""

    def record(self) -> None:
        """Complete frames as CUDA graphs from now on, if the talker can be recorded."""
        if self._talker.recordable:
            self._recorded = RecordedFrames(self._talker, self.states)
            if self._makes_latents:
                self._recorded_embedding = record_embedding(self._talker, self.states)

    def export(self) -> None:
        """Keep the rows of every step for `take_exported`."""
        self._exports_rows = True

    def take_exported(self) -> dict[int, NDArray[np.float32]]:
        """Take the [T, E] rows of the last step's new positions, by slot."""
        leaving, self._leaving = self._leaving, None
        return {} if leaving is None else leaving.by_slot()

    def take_logprobs(self) -> dict[int, CodeLogprobs]:
        """Take how probable the last step's codes 0 were, by slot, for requests that ask for it."""
        logprobs, self._logprobs = self._logprobs, {}
        return logprobs

    def schedule(
        self,
        slots: Sequence[int],
        first_position: NDArray[np.integer],
        num_positions: NDArray[np.integer],
    ) -> None:
        """Record a step's requests; `input_rows` and `sample` follow in this order."""
        scheduled = ScheduledRows(
            np.asarray(slots, dtype=np.int64),
            first_position.astype(np.int64),
            num_positions.astype(np.int64),
        )
        self._indices = StepIndices.build(
            scheduled, self.states, self._talker.min_rows, exports=self._exports_rows
        )

    def input_rows(self) -> torch.Tensor:
        """Input rows of all scheduled positions.

        Returns:
            [N, D or W] in the model's dtype, requests one after the other.
        """
        states, at = self.states, self._get_indices().inputs
        inputs = states.rows[at.slot, at.row]
        if len(at.fed_place):
            frames = states.frames[at.fed_slot, at.fed_frame]
            embed = self._recorded_embedding or self._talker.embed_frames
            embedded = embed(self._pad_rows(frames))[: len(frames)]
            consumed = inputs[:, : embedded.shape[1]]
            consumed.index_add_(0, at.fed_place, embedded.to(inputs.dtype))
        return inputs

    def rotary_positions(self) -> torch.Tensor | None:
        """[A, N] float32: where all scheduled positions stand; None: they are counted."""
        if not self.states.positions.shape[2]:
            return None
        at = self._get_indices().inputs
        return self.states.positions[at.slot, at.position].T.contiguous()

    def sample(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw code 0 and the decision to stop, complete the frames and remember them.

        A request whose prefill or recompute ends in a later step has a row like any other; its
        frame goes to the scratch slot, because vLLM discards its token.

        Args:
            logits: [R, V] scores of code 0 at each request's last position.

        Returns:
            [R] int64 tokens for vLLM, which are the frames' codes 0 or, of a talker of latents, the
            drawn ones, and [R, Q] int64 or [R, E] float32 frames.
        """
        step, states = self._get_indices(), self.states
        if self._exports_rows:
            self._leaving = self._export(step)
        count = logits.shape[0]
        slots, slot_index, frame_index = step.slots, step.frames.slot, step.frames.frame
        states.draw_ahead(slots[:count], step.frame[:count])
        draws = FrameDraws(
            uniforms=states.uniforms[slot_index, frame_index],
            sampling=self._gather_sampling(slot_index, RESIDUAL),
            is_sampled=not self._makes_latents and bool(states.is_sampled[slots, RESIDUAL].any()),
            repetition=self._find_repetition_penalty(step),
            noise=states.noise[slot_index, frame_index] if self._makes_latents else None,
            previous=self._gather_previous(slot_index, frame_index)
            if self._makes_latents
            else None,
            options=states.frame_options[slot_index] if self._talker.num_frame_options else None,
            steps=tuple(states.frame_steps[slots].tolist()) if self._talker.usual_steps else None,
        )
        # Requests are padded with dummy ones of the scratch slot; see `Talker.min_rows`.
        code0 = self._sample_code0(self._pad_rows(logits).float(), draws.uniforms, step)
        complete = self._recorded or self._talker.complete_frames
        frames = complete(self._talker.sampled_hidden, code0, draws)[:count]
        self._keep_logprobs(logits, code0[:count], slots[:count], step.is_new)
        self._tell_guides(frames, slots[:count], step.is_new)
        states.frames[step.frames.target[:count], frame_index[:count]] = frames
        states.num_frames[slots[:count][step.is_new]] += 1
        states.num_frames[states.scratch_slot] = 0
        # A talker may have put its end code in the place of another that ends speech too.
        return code0[:count] if self._makes_latents else frames[:, 0], frames

    def _keep_logprobs(
        self,
        logits: torch.Tensor,
        code0: torch.Tensor,
        slots: NDArray[np.int64],
        is_new: NDArray[np.bool_],
    ) -> None:
        """Keep how probable the drawn codes are, by the scores as the talker made them: [R, V] and
        [R]."""
        wanted = np.flatnonzero(self.states.has_logprobs[slots] & is_new)
        if not wanted.size:
            return
        index = upload(torch.from_numpy(wanted), logits.device)
        num_top = self.states.num_top_logprobs[slots[wanted]].tolist()
        found = list_logprobs(logits[index], code0[index], num_top)
        self._logprobs.update(zip(slots[wanted].tolist(), found, strict=True))

    def _tell_guides(
        self, frames: torch.Tensor, slots: NDArray[np.int64], is_new: NDArray[np.bool_]
    ) -> None:
        """Pass the new codes 0 to the guides of their requests."""
        guides = self.states.guides
        told = [row for row, slot in enumerate(slots.tolist()) if is_new[row] and slot in guides]
        if told:
            codes = frames[:, 0].tolist()
            for row in told:
                guides[int(slots[row])].accept(codes[row])

    def _export(self, step: StepIndices) -> LeavingRows:
        """Recomputed positions are left out: their rows have left."""
        states, slots = self.states, step.scheduled.slots
        kept = self._talker.exported[step.frames.exported].float()
        ends = step.scheduled.end_position
        states.num_exported[slots] = np.maximum(ends, states.num_exported[slots])
        return LeavingRows(slots, step.num_leaving, Download(kept))

    def _sample_code0(
        self, logits: torch.Tensor, uniforms: torch.Tensor, step: StepIndices
    ) -> torch.Tensor:
        """[R, V] float32 scores -> [R] int64."""
        states, end_code = self.states, self._talker.end_code
        penalized = states.is_penalized[step.slots, CODE_0].any()
        if not self._makes_latents and self._talker.law_draws is None:
            slots = step.slots.tolist()
            logits = add_bias(logits, slots, states.code_bias)
            if penalized:
                logits = self._penalize(logits, step)
            logits = hold_to_guides(logits, slots, states.guides)
        early = step.frames.early
        if not self._talker.decides_stop:
            if end_code is not None and len(early):
                logits = logits.clone()
                logits[:, end_code].index_fill_(0, early, -torch.inf)
            if self._talker.law_draws is not None:
                return self._talker.draw_first(logits, self._build_sampler_inputs(uniforms, step))
            return self._draw(logits, uniforms[:, 0], step, CODE_0)
        code0 = self._draw(logits, uniforms[:, 0], step, CODE_0)
        scores = self._talker.stop_scores().float()
        stops = self._draw(scores, uniforms[:, -1], step, STOP).bool()
        stops.index_fill_(0, early, False)
        assert end_code is not None, "a talker that decides to stop has an end code"
        return code0.masked_fill(stops, end_code)

    def _build_sampler_inputs(self, uniforms: torch.Tensor, step: StepIndices) -> SamplerInputs:
        """What the talker's own law draws codes 0 by."""
        assert self._talker.law_draws is not None
        states, index = self.states, step.frames.slot
        own = uniforms[:, self._talker.num_codebooks :][:, : self._talker.law_draws]
        places = step.frames.frame[:, None] + torch.arange(
            -self._talker.history_frames, 0, device=index.device
        )
        recent = states.frames[index[:, None], places.clamp(min=0)]
        return SamplerInputs(
            uniforms=torch.cat([uniforms[:, :1], own], dim=1),
            sampling=self._gather_sampling(index, CODE_0),
            is_sampled=bool(states.is_sampled[step.slots, CODE_0].any()),
            recent=torch.where(places[..., None] < 0, -1, recent),
            penalty=states.repetition_penalty[index, CODE_0],
        )

    def _penalize(self, logits: torch.Tensor, step: StepIndices) -> torch.Tensor:
        """[R, V] scores of code 0, less for codes that were used."""
        states, index = self.states, step.frames.slot
        spoken = self._gather_history(step, codebooks=1)[:, :, 0]
        repeated = torch.cat([self._prompt_codes.expand(len(spoken), -1), spoken], dim=1)
        logits = penalize_repetition(logits, repeated, states.repetition_penalty[index, CODE_0])
        presence, frequency = states.use_penalty[index].unbind(1)
        return penalize_use(logits, spoken, presence, frequency)

    def _draw(
        self, scores: torch.Tensor, uniforms: torch.Tensor, step: StepIndices, level: int
    ) -> torch.Tensor:
        """[R, V] float32 scores and [R] random numbers -> [R] int64."""
        if not self.states.is_sampled[step.slots, level].any():
            return scores.argmax(dim=-1)
        return sample_codes(scores, uniforms, self._gather_sampling(step.frames.slot, level))

    def _find_repetition_penalty(self, step: StepIndices) -> RepetitionPenalty | None:
        if self._makes_latents or not self.states.is_penalized[step.slots, RESIDUAL].any():
            return None
        penalty = self.states.repetition_penalty[step.frames.slot, RESIDUAL]
        return RepetitionPenalty(self._gather_history(step), penalty)

    def _gather_previous(self, slot_index: torch.Tensor, frame_index: torch.Tensor) -> torch.Tensor:
        """[R, E] the frames before these."""
        states = self.states
        earlier = states.frames[slot_index, (frame_index - 1).clamp(min=0)]
        return torch.where(frame_index[:, None] > 0, earlier, states.before_first[slot_index])

    def _gather_sampling(self, slot_index: torch.Tensor, level: int) -> CodeSampling:
        states = self.states
        return CodeSampling(
            states.temperature[slot_index, level],
            states.top_k[slot_index, level],
            states.top_p[slot_index, level],
        )

    def _gather_history(self, step: StepIndices, codebooks: int | None = None) -> torch.Tensor:
        """[R, F, Q] the frames before these, or their first codes; -1 where there are fewer."""
        longest = max(int(step.frame.max()), 1)
        spoken = self.states.frames[step.frames.slot, :longest, :codebooks]
        is_old = torch.arange(longest, device=spoken.device) < step.frames.frame[:, None]
        return torch.where(is_old[:, :, None], spoken, -1)

    def _pad_rows(self, rows: torch.Tensor) -> torch.Tensor:
        return pad_rows(rows, self._talker.min_rows)

    def _get_indices(self) -> StepIndices:
        assert self._indices is not None, "the runner samples before it has scheduled"
        return self._indices
