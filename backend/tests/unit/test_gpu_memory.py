"""What stages will hold on a GPU is summed and compared with what is free before any loads."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Mapping
from typing import Any

import pytest

from cantata.config import ArDeployment, CodecDeployment, StageDeployment
from cantata.contract.data.errors import ConfigError, StageDied
from cantata.pipeline.gpu_memory import (
    CUDA_BYTES,
    GpuMemory,
    LoadGate,
    check_card,
    list_cards,
)
from cantata.utils import gpus

GIB = 1 << 30
TALKER = {"weights": 3 * GIB, "keys and values": 4 * GIB + GIB // 2, "graphs": 0}
DECODER = {"weights": GIB, "states": GIB // 4}


def test_stages_that_fit_pass_to_the_byte() -> None:
    whole = sum((*TALKER.values(), *DECODER.values()))
    assert check_card(0, {"talker": TALKER, "decoder": DECODER}, whole) == whole
    with pytest.raises(ConfigError):
        check_card(0, {"talker": TALKER, "decoder": DECODER}, whole - 1)


def test_what_does_not_fit_names_the_gpu_the_stages_and_all_numbers() -> None:
    with pytest.raises(ConfigError) as refused:
        check_card(1, {"talker": TALKER, "decoder": DECODER}, 8 * GIB)
    assert str(refused.value) == (
        "GPU 1: 8.75 GiB of memory are needed ('talker': weights 3.00 GiB, keys and values "
        "4.50 GiB; 'decoder': weights 1.00 GiB, states 0.25 GiB), 8.00 GiB are free; lower slots, "
        "max_model_len or kv_positions, or put a stage on another GPU (`device`)"
    )


@pytest.mark.parametrize(
    ("stage", "cards"),
    [
        (CodecDeployment(), []),
        (CodecDeployment(device="cuda"), [0]),
        (CodecDeployment(device="cuda:2"), [2]),
        (ArDeployment(device="cuda:1", tensor_parallel=3), [1, 2, 3]),
    ],
)
def test_a_stage_uses_a_gpu_for_each_rank_from_its_own_on(
    stage: StageDeployment, cards: list[int]
) -> None:
    assert [*list_cards(stage)] == cards


def gate(
    memory: GpuMemory, apart: bool = True, devices: tuple[str, str] = ("cuda", "cuda")
) -> LoadGate:
    starting: Mapping[str, StageDeployment] = {
        "talker": ArDeployment(device=devices[0]),
        "decoder": CodecDeployment(device=devices[1]),
    }
    together = ("talker", "decoder")
    processes = {name: (name,) if apart else together for name in starting}
    return LoadGate(memory, starting, processes)


async def ask(gate: LoadGate) -> list[BaseException | None]:
    asking = [gate.admit("talker", TALKER), gate.admit("decoder", DECODER)]
    return await asyncio.gather(*asking, return_exceptions=True)


NEEDED = sum((*TALKER.values(), *DECODER.values()))


async def test_nobody_loads_before_all_have_said_what_they_need() -> None:
    one = gate(GpuMemory(lambda card: NEEDED + 2 * CUDA_BYTES))
    first = asyncio.create_task(one.admit("talker", TALKER))
    await asyncio.wait([first], timeout=0.05)
    assert not first.done()
    await one.admit("decoder", DECODER)
    await first
    one.close()


@pytest.mark.parametrize(("apart", "contexts"), [(True, 2), (False, 1)])
async def test_each_process_has_a_cuda_context(apart: bool, contexts: int) -> None:
    for missing in (0, 1):
        free = NEEDED + contexts * CUDA_BYTES - missing
        one = gate(GpuMemory(lambda card, free=free: free), apart)  # type: ignore[misc]
        answers = await ask(one)
        one.close()
        refused = [type(answer) for answer in answers if answer is not None]
        assert refused == [ConfigError] * 2 * missing


async def test_stages_on_two_gpus_count_apart() -> None:
    free = {0: sum(TALKER.values()) + CUDA_BYTES, 1: sum(DECODER.values()) + CUDA_BYTES}
    one = gate(GpuMemory(free.get), devices=("cuda:0", "cuda:1"))
    assert await ask(one) == [None, None]
    one.close()
    other = gate(GpuMemory(free.get), devices=("cuda:1", "cuda:0"))
    assert [type(answer) for answer in await ask(other)] == [ConfigError] * 2


async def test_models_that_load_at_the_same_time_share_what_was_free() -> None:
    """While one loads, the driver's figure is neither before nor after it."""
    free = [NEEDED + 2 * CUDA_BYTES + GIB]
    memory = GpuMemory(lambda card: free[0])
    first = gate(memory)
    assert await ask(first) == [None, None]
    free[0] -= GIB  # a part of the first one is there
    second = gate(memory)
    assert [type(answer) for answer in await ask(second)] == [ConfigError] * 2
    first.close()
    await asyncio.sleep(0)  # its task ends
    free[0] = 2 * NEEDED
    third = gate(memory)
    assert await ask(third) == [None, None]
    third.close()


async def test_where_nobody_can_say_what_is_free_all_load() -> None:
    one = gate(GpuMemory(lambda card: None))
    assert await ask(one) == [None, None]
    one.close()


async def test_a_stage_that_cannot_start_holds_up_no_other() -> None:
    one = gate(GpuMemory(lambda card: NEEDED * 9))
    waiting = asyncio.create_task(one.admit("talker", TALKER))
    await asyncio.sleep(0)
    one.close()
    with pytest.raises(StageDied, match="another stage"):
        await waiting


class FakeDriver:
    """`libnvidia-ml`, of two GPUs."""

    FREE = (5 * GIB, 7 * GIB)

    def __init__(self, name: str) -> None:
        self.opened = 0

    def nvmlInit_v2(self) -> int:  # noqa: N802 (NVIDIA's name)
        return 0

    def nvmlShutdown(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:  # noqa: N802
        handle._obj.value = index + 1
        return 0 if index < 2 else 2

    def nvmlDeviceGetHandleByUUID(self, name: bytes, handle: Any) -> int:  # noqa: N802
        handle._obj.value = 2
        return 0 if name == b"GPU-b" else 6

    def nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:  # noqa: N802
        memory._obj.free = self.FREE[handle.value - 1]
        return 0


@pytest.mark.parametrize(
    ("visible", "free"),
    [(None, [5, 7, None]), ("1", [7, None]), ("GPU-b,0", [7, 5]), ("GPU-c", [None]), ("", [None])],
)
def test_the_driver_is_asked_about_the_gpus_that_are_visible(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, free: list[int | None]
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", FakeDriver)
    monkeypatch.delenv(gpus.VISIBLE, raising=False)
    if visible is not None:
        monkeypatch.setenv(gpus.VISIBLE, visible)
    found = [gpus.read_free_bytes(index) for index in range(len(free))]
    assert found == [None if gib is None else gib * GIB for gib in free]


def test_without_a_driver_nobody_can_say() -> None:
    assert gpus.read_free_bytes(0) is None
