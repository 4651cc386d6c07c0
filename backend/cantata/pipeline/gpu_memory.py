"""Whether the GPUs have room for all that is about to load, before any of it does.

Each stage on a GPU says what it is going to hold, and loads once the sum of all of them fits into
what is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from cantata.config import StageDeployment
from cantata.contract.data.errors import CantataError, ConfigError, StageDied
from cantata.utils.gpus import read_free_bytes

CUDA_BYTES = 512 << 20
"""Taken for what CUDA itself holds for a process. An estimate: from 300 to 600 MiB."""
CUDA = "CUDA"
OTHER_CANNOT_START = "another stage of this model cannot start"
_REMEDY = "lower slots, max_model_len or kv_positions, or put a stage on another GPU (`device`)"

Needs = Mapping[str, int]
"""Bytes, by what takes them."""


def list_cards(stage: StageDeployment) -> range:
    """The GPUs that a stage uses, by index."""
    first = stage.gpu or 0
    return range(first, first + stage.num_gpus)


def check_card(card: int, needs: Mapping[str, Needs], free: int) -> int:
    """Compare what stages will hold on one GPU with what is free there.

    Args:
        needs: by stage.
        free: bytes.

    Returns:
        The sum of the needs.

    Raises:
        ConfigError: has all the numbers.
    """
    whole = sum(sum(of_stage.values()) for of_stage in needs.values())
    if whole > free:
        parts = "; ".join(f"{stage!r}: {_format_needs(n)}" for stage, n in needs.items())
        raise ConfigError(
            f"GPU {card}: {_format_gib(whole)} of memory are needed ({parts}), "
            f"{_format_gib(free)} are free; {_REMEDY}"
        )
    return whole


def _format_needs(needs: Needs) -> str:
    return ", ".join(f"{what} {_format_gib(count)}" for what, count in needs.items() if count)


def _format_gib(count: int) -> str:
    return f"{count / 2**30:.2f} GiB"


@dataclass(slots=True)
class GpuMemory:
    """The memory of this machine's GPUs, as models of one server share it.

    While any of them loads, the driver's figures are of no use to the others: each model counts
    against what was free before the first one began, less what was granted since.
    """

    read_free: Callable[[int], int | None] = read_free_bytes
    """What is free on a GPU now. None: nobody can say."""
    _loading: int = 0
    _left: dict[int, int] = field(default_factory=dict)

    @contextmanager
    def grant(self, needs: Mapping[int, Mapping[str, Needs]]) -> Iterator[None]:
        """Take the memory of stages that load during the block.

        Args:
            needs: by GPU, then by stage.

        Raises:
            ConfigError: it does not fit.
        """
        if not self._loading:
            self._left.clear()
        wholes: dict[int, int] = {}
        for card, of_card in needs.items():
            left = self._left.get(card)
            if left is None and (left := self.read_free(card)) is None:
                continue
            self._left[card] = left
            wholes[card] = check_card(card, of_card, left)
        for card, whole in wholes.items():
            self._left[card] -= whole
        self._loading += 1
        try:
            yield
        finally:
            self._loading -= 1


class LoadGate:
    """Lets the stages of one start load once it is known that all of them fit. `processes`: by
    stage, the stages of its process."""

    def __init__(
        self,
        memory: GpuMemory,
        starting: Mapping[str, StageDeployment],
        processes: Mapping[str, Sequence[str]],
    ) -> None:
        self._memory, self._starting, self._processes = memory, starting, processes
        self._needs: dict[str, Needs] = {}
        self._decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._granting: asyncio.Task[None] | None = None

    async def admit(self, stage: str, needs: Needs) -> None:
        """Wait until all have said what they need.

        Raises:
            ConfigError: it does not fit.
            StageDied: another stage cannot start.
        """
        self._needs[stage] = needs
        if len(self._needs) == len(self._starting) and self._granting is None:
            self._granting = asyncio.create_task(self._grant(), name="gpu-memory")
        await asyncio.shield(self._decided)

    def close(self) -> None:
        """All have loaded, or one cannot."""
        if not self._decided.done():
            self._refuse(StageDied(OTHER_CANNOT_START))
        self._over.set()

    async def _grant(self) -> None:
        try:
            with self._memory.grant(self._by_card()):
                if not self._decided.done():
                    self._decided.set_result(None)
                await self._over.wait()
        except CantataError as error:
            self._refuse(error)

    def _refuse(self, error: CantataError) -> None:
        self._decided.set_exception(error)
        self._decided.exception()  # nobody may wait for it

    def _by_card(self) -> Mapping[int, Mapping[str, Needs]]:
        cards: dict[int, dict[str, Needs]] = {}
        for name, stage in self._starting.items():
            is_first = name == self._processes[name][0]
            own = {CUDA: CUDA_BYTES} if is_first else {}
            for card in list_cards(stage):
                cards.setdefault(card, {})[name] = {**self._needs[name], **own}
        return cards
