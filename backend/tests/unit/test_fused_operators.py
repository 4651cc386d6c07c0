"""Each kernel of Triton does what its operator does in torch. No GPU: Triton interprets them."""

from __future__ import annotations

import copy
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from cantata.contract.model import fused_operators
from triton_elsewhere import Call, Made

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton not installed"
)
TESTS = Path(__file__).parents[1]
EPSILON = 1e-6
TYPES = {"float32": (torch.float32, 2e-6), "bfloat16": (torch.bfloat16, 2e-2)}
"""And how far the results may be apart: other orders of sums, and two roundings, for which the
interpreter cuts."""


def _run_elsewhere(*arguments: str, **environment: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "triton_elsewhere", *arguments],
        env={**os.environ, **environment},
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def _frame(start: int, length: int, number: torch.dtype, is_normed: bool = True) -> Call:
    """Positions of three requests with four heads of keys and eight of queries; nothing is in the
    memory from `start` on."""
    requests, kv_heads, positions, size = 3, 2, 11, 16
    heads = torch.randn(requests, length, 8 * size, dtype=number)
    angles = torch.randn(2, positions, size)
    memory = torch.randn(2, requests, kv_heads, positions, size, dtype=number)
    memory[:, :, :, start:] = torch.nan
    norms = [torch.randn(size, dtype=number) if is_normed else None for _ in range(2)]
    inputs = (heads, *norms, EPSILON, angles[0], angles[1], memory[0], memory[1], start)
    return "attend_in_frame", inputs


def _draws(requests: int, codes: int, number: torch.dtype) -> Call:
    """Greedy, all codes, few codes, a share of them, both; scores that are equal, too."""
    torch.manual_seed(codes)
    logits = (4 * torch.randn(requests, codes + 3)[:, 3:]).to(number)
    logits[:, : codes // 2] = logits[:, codes // 2 : 2 * (codes // 2)]
    cycle = torch.arange(requests)
    temperature = torch.where(cycle % 5 == 0, 0.0, 0.5 + 0.1 * (cycle % 7))
    top_k = torch.where(cycle % 3 == 0, 0, 1 + cycle % 50)
    top_p = torch.where(cycle % 4 == 0, 1.0, 0.3 + 0.1 * (cycle % 6))
    uniforms = torch.rand(requests, 4)
    uniforms[1::9] = 1 - 2.0**-24
    uniforms[2::9] = 0.0
    return "draw_codes", (logits, uniforms[:, 2], temperature, top_k, top_p)


def _calls() -> dict[str, Call]:
    torch.manual_seed(0)
    calls: dict[str, Call] = {}
    for name, (number, _) in TYPES.items():
        rows = torch.randn(2, 7, 3 * 48, dtype=number)
        weight = torch.randn(48, dtype=number)
        apart = (rows[0][:, 48:96], rows[1][:, :48])
        calls[f"{name}: norm"] = "add_rms_norm", (*apart, weight, EPSILON)
        calls[f"{name}: gate"] = "silu_and_multiply", (torch.randn(3, 2, 2600, dtype=number),)
        turned = torch.randn(7, 64, dtype=number), torch.randn(7, 32, dtype=number)
        calls[f"{name}: rotation"] = "rotate_heads", (*turned, *torch.randn(2, 7, 1, 16))
        calls[f"{name}: first positions"] = _frame(0, 2, number)
        calls[f"{name}: second position"] = _frame(1, 1, number)
        calls[f"{name}: last position"] = _frame(10, 1, number)
        calls[f"{name}: without norms"] = _frame(4, 1, number, is_normed=False)
        calls[f"{name}: draws"] = _draws(45, 5, number)
    calls["float32: draws of many"] = _draws(12, 100, torch.float32)  # the sort takes long
    return calls


@pytest.fixture(scope="module")
def calls() -> dict[str, Call]:
    return _calls()


@pytest.fixture(scope="module")
def interpreted(calls: dict[str, Call], tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("kernels")
    torch.save(calls, folder / "calls")
    _run_elsewhere("interpret", str(folder / "calls"), str(folder / "made"), TRITON_INTERPRET="1")
    return torch.load(folder / "made")


def _run_plain(call: Call) -> Made:
    name, inputs = call[0], copy.deepcopy(call[1])
    made = fused_operators.PLAIN[name](*inputs)
    return [made, *(x for x in inputs if isinstance(x, torch.Tensor))]


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize("case", _calls())
def test_a_kernel_does_what_torch_does(
    case: str, calls: dict[str, Call], interpreted: dict[str, Made]
) -> None:
    tolerance = TYPES[case.partition(":")[0]][1]
    expected, found = _run_plain(calls[case]), interpreted[case]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance, equal_nan=True)


@pytest.mark.thorough
@needs_triton
def test_every_kernel_compiles_for_a_gpu(tmp_path: Path) -> None:
    compiled = _run_elsewhere("compile", TRITON_CACHE_DIR=str(tmp_path)).splitlines()
    assert {line.partition("_kernel")[0] for line in compiled} == set(fused_operators.PLAIN)


@pytest.mark.parametrize("case", _calls())
def test_off_the_cpu_each_is_one_operator(case: str, calls: dict[str, Call]) -> None:
    """With the same shapes, on tensors without values."""
    name, inputs = calls[case]
    there = [x.to("meta") if isinstance(x, torch.Tensor) else x for x in inputs]
    made, expected = getattr(torch.ops.cantata, name)(*there), _run_plain(calls[case])[0]
    assert torch._C._dispatch_has_kernel_for_dispatch_key(f"cantata::{name}", "CUDA")
    assert (made is None) == (expected is None)
    if made is not None and expected is not None:
        assert (made.shape, made.dtype) == (expected.shape, expected.dtype)


def test_without_triton_an_operator_is_torch_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_operators, "_find_kernels", lambda: None)
    x = torch.randn(3, 8)
    assert torch.equal(
        fused_operators.launch("silu_and_multiply", x), fused_operators.silu_and_multiply(x)
    )
