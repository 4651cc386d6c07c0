"""Steps that are near the one before leave out blocks, each row by itself.

What the middle blocks add is kept from full steps and foreseen for the others, by a Taylor series
whose derivatives are divided differences of full steps. The rules and where they are from: TeaCache
(arXiv 2411.19108), ParaAttention's first-block cache, cache-dit's DBCache, TaylorSeer (arXiv
2503.06923).

Letters: T text tokens, I tokens of pictures (noise and references), D width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.denoiser import Skipping, SkipTest
from cantata_layers.qwen_image.transformer.blocks import BlockStack


@dataclass(frozen=True, slots=True)
class Series:
    """The last value and its derivatives by step."""

    last: int = 0
    terms: tuple[torch.Tensor, ...] = ()
    """The value, its first derivative, and so on."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no value yet."""
        return not self.terms

    def noted(self, step: int, value: torch.Tensor, order: int) -> Series:
        """The series with the value of a later step, up to the derivative `order`."""
        terms = [value]
        for before in self.terms[:order]:
            terms.append((terms[-1] - before) / (step - self.last))
        return Series(step, tuple(terms))

    def at(self, step: int) -> torch.Tensor:
        """The value foreseen for a step; there is one value at least."""
        distance = step - self.last
        foreseen = self.terms[0]
        for power, term in enumerate(self.terms[1:], start=1):
            foreseen = foreseen + term * (distance**power / math.factorial(power))
        return foreseen


EMPTY = Series()


COEFFICIENTS = (-450.0, 280.0, -45.0, 3.2, -0.02)
"""Of TeaCache's polynomial for Qwen-Image, as vLLM-Omni and ComfyUI-TeaCache have it."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What one branch of one picture remembers from step to step."""

    steps: int
    """In all."""
    name: str = ""
    """Of the branch, for memories that are kept elsewhere."""
    step: int = 0
    """That comes next."""
    compared: torch.Tensor | None = None
    """[I, D]: the first block's input at the last step, or what the first blocks added at the
    last full one."""
    drift: float = 0.0
    """Changes of the first block's input since the last full step."""
    image: Series = EMPTY
    """What the middle blocks added to pictures at full steps, as the next for the text."""
    text: Series = EMPTY

    def must_be_full(self, warmup_steps: int) -> bool:
        """Whether no test is asked."""
        return self.step < warmup_steps or self.step + 1 >= self.steps or self.image.is_empty


def check_skipping(skipping: Skipping | None, blocks: int, *, few_steps: bool) -> None:
    """Refuse what cannot shorten a step, or would spoil the picture.

    Args:
        skipping: as it is asked for; None is always right.
        few_steps: whether the checkpoint was distilled to few steps.

    Raises:
        ConfigError: it is refused.
    """
    if skipping is None:
        return
    if few_steps:
        raise ConfigError(
            "cache: this checkpoint draws in few steps, and none of them is near the one before; "
            "valid: none"
        )
    if skipping.first_blocks + skipping.last_blocks >= blocks:
        raise ConfigError(
            f"cache: first_blocks {skipping.first_blocks} and last_blocks {skipping.last_blocks} "
            f"leave none of the checkpoint's {blocks} blocks to skip; valid: fewer in all"
        )


class SkippingPass:
    """One step's passage; `memories` are those after it, for the caller to keep if all went well.
    `memories`: of the rows, before the step."""

    def __init__(self, skipping: Skipping, memories: Sequence[Memory]) -> None:
        self._skipping = skipping
        self.memories = list(memories)
        self.full: list[bool] = []
        """For each row, whether it computed every block."""

    def __call__(self, stack: BlockStack) -> None:
        """Take the rows through the blocks."""
        rule = self._skipping
        middle = range(rule.first_blocks, stack.blocks - rule.last_blocks)
        measured = self._run_first(stack)
        changes = self._measure_changes(measured)
        self.full = [self._is_full(row, changes[row]) for row in range(len(self.memories))]
        self._run_middle(stack, middle)
        stack.run(range(middle.stop, stack.blocks))
        for row, memory in enumerate(self.memories):
            self.memories[row] = self._after(memory, changes[row], measured[row], self.full[row])

    def _run_first(self, stack: BlockStack) -> Sequence[torch.Tensor | None]:
        """[I, D] for each row: what the test compares. The first blocks are computed."""
        rule = self._skipping
        if rule.test is SkipTest.INPUT:
            # Without a clone each view would keep the tensor of all rows.
            measured = [output.clone() for output in stack.first_inputs()]
            stack.run(range(rule.first_blocks))
            return measured
        if rule.test is SkipTest.INTERVAL:
            stack.run(range(rule.first_blocks))
            return [None] * len(self.memories)
        before = [image.clone() for image in stack.images]
        stack.run(range(rule.first_blocks))
        return [image - old for image, old in zip(stack.images, before, strict=True)]

    def _measure_changes(self, measured: Sequence[torch.Tensor | None]) -> list[float]:
        """Relative to what was compared before; one synchronization for all rows."""
        ratios = [
            torch.full((), torch.inf)
            if memory.compared is None or now is None
            else _average(now - memory.compared) / _average(memory.compared)
            for memory, now in zip(self.memories, measured, strict=True)
        ]
        return [float(ratio) for ratio in torch.stack([r.float().cpu() for r in ratios])]

    def _is_full(self, row: int, change: float) -> bool:
        rule, memory = self._skipping, self.memories[row]
        if memory.must_be_full(rule.warmup_steps):
            return True
        match rule.test:
            case SkipTest.INPUT:
                value = memory.drift + self._map_change(change)
            case SkipTest.RESIDUAL:
                value = change
            case SkipTest.INTERVAL:
                return memory.step - memory.image.last >= rule.limit
        # Also where the value is not a number.
        return not value <= rule.limit

    def _run_middle(self, stack: BlockStack, middle: range) -> None:
        """Compute full rows, foresee the others, and note in the memories what full ones added."""
        full = [row for row, is_full in enumerate(self.full) if is_full]
        texts, images = stack.texts, stack.images
        before = {row: (images[row].clone(), texts[row].clone()) for row in full}
        stack.run_some(full, middle)
        for row, memory in enumerate(self.memories):
            if row in before:
                image, text = before[row]
                self.memories[row] = self._note(memory, images[row] - image, texts[row] - text)
            else:
                images[row].add_(memory.image.at(memory.step))
                if self._skipping.last_blocks:
                    texts[row].add_(memory.text.at(memory.step))

    def _note(self, memory: Memory, image: torch.Tensor, text: torch.Tensor) -> Memory:
        """The text is needed only if blocks follow."""
        order, step = self._skipping.order, memory.step
        words = memory.text.noted(step, text, order) if self._skipping.last_blocks else memory.text
        return replace(memory, image=memory.image.noted(step, image, order), text=words)

    def _after(
        self, memory: Memory, change: float, measured: torch.Tensor | None, is_full: bool
    ) -> Memory:
        drifts = self._skipping.test is SkipTest.INPUT
        return replace(
            memory,
            step=memory.step + 1,
            drift=0.0 if is_full or not drifts else memory.drift + self._map_change(change),
            compared=measured if is_full or drifts else memory.compared,
        )

    def _map_change(self, change: float) -> float:
        value = 0.0
        for coefficient in self._skipping.coefficients or COEFFICIENTS:
            value = value * change + coefficient
        return abs(value)


def _average(x: torch.Tensor) -> torch.Tensor:
    return x.float().abs().mean()
