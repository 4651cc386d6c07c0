"""The denoiser's stage: packed forwards over jobs of any size and depth.

Letters: T tokens of a text, R of references, N of a picture, P numbers of a token, E columns of an
embedding, H height, W width.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import CantataError, ConfigError, RequestFailed
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.model.denoiser import DenoiserOptions, Parallel, Ranks
from cantata_layers.qwen_image.config import load_config
from cantata_layers.qwen_image.defaults import drawing_defaults, lora_files
from cantata_layers.qwen_image.diffusers_backend.load import load_hooked_network
from cantata_layers.qwen_image.diffusers_backend.network import forget as forget_branch
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.lora import Fusion
from cantata_layers.qwen_image.sampling import (
    PreviewColours,
    draw_noise,
    euler,
    finished,
    fit_preview,
    guided,
    to_latents,
)
from cantata_layers.qwen_image.stages.branches import (
    BranchExchange,
    BranchStep,
    Compute,
    Made,
    PackedSteps,
    SharedSteps,
)
from cantata_layers.qwen_image.stages.pipeline import (
    CONDITION,
    NEGATIVE,
    REFERENCES,
    DenoiseInput,
    forward_size,
)
from cantata_layers.qwen_image.transformer.load import load_denoiser, place
from cantata_layers.qwen_image.transformer.network import ReferenceTokens, Row
from cantata_layers.qwen_image.transformer.packing import by_row
from cantata_layers.qwen_image.transformer.skipping import Memory, check_skipping
from cantata_layers.qwen_image.vae.coder import PictureEncoder

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
"""Float16 overflows in this model."""


@dataclass(slots=True, weakref_slot=True)
class PictureInProgress:
    """One picture that is being drawn."""

    inputs: DenoiseInput
    branches: tuple[Any, ...]
    """The prompt's, and that of the negative prompt if the picture is guided."""
    latents: torch.Tensor
    """[N, P] float32, as the next."""
    number: int
    """Of pictures without guidance in the order in which they began; 0 for others."""
    memories: tuple[Memory, ...]
    """Of the branches, where steps may be shortened."""
    velocity: torch.Tensor | None = None
    """Of the last step."""
    step: int = 0

    @property
    def share(self) -> float:
        """The share of noise in the latents."""
        return self.inputs.shares[self.step]

    def next_steps(self) -> list[BranchStep]:
        return [
            BranchStep(Row(condition, self.latents, self.share), memory, self.number, branch)
            for branch, (condition, memory) in enumerate(
                zip(self.branches, self.memories, strict=True)
            )
        ]


class DenoisingNetwork(Protocol):
    """What a denoiser needs of a network, beside its steps."""

    device: torch.device

    def prepare(self, text: torch.Tensor, grid: Grid, references: Sequence[ReferenceTokens]) -> Any:
        """What all steps of a branch share: an object with `text` and `references`, a row for each
        token. Raises InvalidRequest."""
        ...

    def group(self, condition: Any) -> Hashable:
        """Branches share a forward only with those of an equal group."""
        ...


class PictureDenoiser:
    """Implements `contract.model.denoiser.Denoiser`.

    Args:
        network: of the checkpoint, as the next.
        token_width: P.
        forget: called with the name of a branch that is done or dropped.
    """

    def __init__(
        self,
        network: DenoisingNetwork,
        compute: Compute,
        colours: PreviewColours,
        token_width: int,
        forget: Callable[[str], None] | None = None,
    ) -> None:
        self.network, self._compute, self._colours = network, compute, colours
        self._token_width, self._forget = token_width, forget
        self._numbers = count()
        self._names = count()

    def awaits(self, inputs: DenoiseInput) -> Collection[str]:
        """Embeddings, and what is made of references."""
        return (CONDITION, NEGATIVE, *((REFERENCES,) if inputs.references else ()))

    def begin(self, inputs: DenoiseInput, arrived: Mapping[str, Payload]) -> PictureInProgress:
        """A job at its first noise.

        Raises:
            RequestFailed: what arrived is not what was announced.
            InvalidRequest: text or pictures have more positions than the model knows.
        """
        grid = Grid(*inputs.grid)
        references = self._collect_references(inputs, arrived)
        ports = (CONDITION, NEGATIVE) if inputs.guidance != 1 else (CONDITION,)
        texts = [arrived[port] for port in ports]
        branches = tuple(self.network.prepare(_to_tensor(text), grid, references) for text in texts)
        noise = draw_noise(inputs.seed, grid, self._token_width)
        latents = noise.to(self.network.device)
        memories = tuple(
            Memory(len(inputs.shares) - 1, name=str(next(self._names))) for _ in branches
        )
        number = next(self._numbers) if len(branches) == 1 else 0
        job = PictureInProgress(inputs, branches, latents, number, memories)
        if self._forget is not None:
            for memory in memories:
                weakref.finalize(job, self._forget, memory.name)
        return job

    def steps(self, job: PictureInProgress) -> int:
        return len(job.inputs.shares) - 1

    def previews(self, job: PictureInProgress) -> int:
        """That the caller wants to see."""
        return job.inputs.previews

    def size(self, job: PictureInProgress) -> ForwardSize:
        """The size of a step over all branches; all steps are alike."""
        return forward_size(
            [len(branch.text) for branch in job.branches],
            len(job.latents) + len(job.branches[0].references),
        )

    def group(self, job: PictureInProgress) -> Hashable:
        """The group of a job's branches, as the network tells it."""
        return self.network.group(job.branches[0])

    @torch.inference_mode()
    def advance(self, jobs: Sequence[PictureInProgress]) -> Sequence[CantataError | None]:
        """One step of each job, in one forward."""
        output = iter(self._compute([step for job in jobs for step in job.next_steps()]))
        steps = [[next(output) for _ in job.branches] for job in jobs]
        velocities = [_guide(job, step) for job, step in zip(jobs, steps, strict=True)]
        # From here on nothing fails: either all jobs advance, or none.
        for job, velocity, step in zip(jobs, velocities, steps, strict=True):
            following = job.inputs.shares[job.step + 1]
            job.latents = euler(job.latents, velocity, job.share, following)
            job.velocity, job.step = velocity, job.step + 1
            job.memories = tuple(memory for _, memory in step)
        return [None] * len(jobs)

    def preview(self, job: PictureInProgress) -> NDArray[np.uint8]:
        """[H, W, 3], a pixel for each place of a latent."""
        foreseen = (
            torch.zeros_like(job.latents)
            if job.velocity is None
            else finished(job.latents, job.velocity, job.share)
        )
        return self._colours.picture(to_latents(foreseen, Grid(*job.inputs.grid)))

    def latents(self, job: PictureInProgress) -> NDArray[np.float32]:
        """[N, P]."""
        values: NDArray[np.float32] = job.latents.float().cpu().numpy()
        return values

    def _collect_references(
        self, inputs: DenoiseInput, arrived: Mapping[str, Payload]
    ) -> Sequence[ReferenceTokens]:
        if not inputs.references:
            return ()
        grids = [Grid(*size) for size in inputs.references]
        tokens = _to_tensor(arrived[REFERENCES])
        lengths = [grid.tokens for grid in grids]
        if len(tokens) != sum(lengths):
            raise RequestFailed(f"references have {len(tokens)} tokens, not {sum(lengths)}")
        parts = by_row(tokens, lengths)
        return [ReferenceTokens(part, grid) for part, grid in zip(parts, grids, strict=True)]


def load_picture_denoiser(checkpoint: Path, options: DenoiserOptions) -> PictureDenoiser:
    """Return a checkpoint's denoiser, with the LoRA files in its folder fused.

    Raises:
        ConfigError: weights are missing or of another shape, a LoRA does not fit, or an option
            cannot be had.
        NotInstalled: an option needs a package that is missing.
    """
    if options.dtype not in DTYPES:
        raise ConfigError(f"dtype {options.dtype} is not served; valid: {', '.join(DTYPES)}")
    config, device = load_config(checkpoint), torch.device(options.device)
    files = lora_files(checkpoint)
    few_steps = drawing_defaults(config.schedule, files).schedule.few_steps
    check_skipping(options.skipping, config.transformer.layers, few_steps=few_steps)
    fusion = Fusion(files, config.transformer) if files else None
    network: DenoisingNetwork
    compute: Compute
    forget = None
    if options.hooked is None:
        _check_packed(options.ranks)
        placement = place(config.transformer, device, DTYPES[options.dtype])
        network = load_denoiser(checkpoint, config.transformer, placement, fusion)
        compute = PackedSteps(network, options.skipping)
    else:
        network = compute = load_hooked_network(checkpoint, options, fusion)
        forget = partial(forget_branch, network.transformer)
    if options.ranks is not None and options.ranks.kind is Parallel.BRANCHES:
        compute = SharedSteps(compute, BranchExchange(options.ranks, device))
    # The encoder is loaded only for this: no picture passes here.
    encoder = PictureEncoder(checkpoint, config.vae, device)
    colours = fit_preview(encoder, config.vae.pixels_per_latent)
    return PictureDenoiser(network, compute, colours, config.transformer.token_width, forget)


def _check_packed(ranks: Ranks | None) -> None:
    if ranks is not None and ranks.kind is not Parallel.BRANCHES:
        raise ConfigError(
            f"parallel: {ranks.kind.value!r} needs `hooked`; valid without: "
            f"{Parallel.BRANCHES.value!r}"
        )


def _guide(job: PictureInProgress, output: Sequence[Made]) -> torch.Tensor:
    """The guided velocity, from those of the branches."""
    negative = output[1][0] if len(output) > 1 else None
    return guided(output[0][0], negative, job.inputs.guidance)


def _to_tensor(payload: Payload) -> torch.Tensor:
    if not isinstance(payload, Rows):
        raise RequestFailed(f"the denoiser takes rows, not {type(payload).__name__}")
    return torch.from_numpy(payload.values)
