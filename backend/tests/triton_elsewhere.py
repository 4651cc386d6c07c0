"""Runs the kernels of Triton without a GPU: in Triton's interpreter, or only through its compiler.

A process of its own does this, because Triton chooses when it is imported.

    TRITON_INTERPRET=1 python -m triton_elsewhere interpret CALLS.pt MADE.pt
    python -m triton_elsewhere compile
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

Call = tuple[str, tuple[Any, ...]]
"""An operator's name and its inputs."""
Made = list[torch.Tensor | None]
"""What an operator returned, and then each of its inputs as it was left."""
CAPABILITY = 90


def interpret(calls: Mapping[str, Call]) -> dict[str, Made]:
    """Launch each operator's kernel on CPU tensors."""
    from cantata.contract.model import fused_operators

    def refuse(*inputs: Any) -> None:
        raise AssertionError("no kernel was made for this shape")

    made: dict[str, Made] = {}
    for case, (name, inputs) in calls.items():
        fused_operators.PLAIN[name] = refuse
        returned = fused_operators.launch(name, *inputs)
        made[case] = [returned, *(x for x in inputs if isinstance(x, torch.Tensor))]
    return made


def compile_all() -> None:
    """Compile each kernel to machine code, in the sizes of Qwen3-TTS 1.7B.

    Raises:
        triton.CompilationError: Triton or its assembler refuses one.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from cantata.contract.model import triton_kernels as kernels

    rows = dict.fromkeys(("residual", "x", "weight", "output"), "*bf16")
    heads = {"num_heads": 16, "num_kv_heads": 8, "head_size": 128}
    memory = ("heads", "query_norm", "key_norm", "keys", "values", "output")
    cases: list[tuple[Any, dict[str, str], dict[str, int]]] = [
        (kernels.add_rms_norm_kernel, {**rows, "epsilon": "fp32"}, {"columns": 1024}),
        (kernels.silu_and_multiply_kernel, rows, {"columns": 1024}),
        (kernels.rotate_heads_kernel, {"queries": "*bf16", "keys": "*bf16"}, heads),
        *(
            (
                kernels.attend_in_frame_kernel,
                {**dict.fromkeys(memory, "*bf16"), "epsilon": "fp32", "scale": "fp32"},
                {**heads, "length": length, "positions": 16, "rows": 16},
            )
            for length in (1, 2)
        ),
        (kernels.draw_codes_kernel, {"logits": "*bf16", "output": "*i64"}, {"codes": 2048}),
    ]
    usual = dict.fromkeys(("cosines", "sines", "uniforms", "temperature", "top_p"), "*fp32")
    usual["top_k"] = "*i64"
    for kernel, types, numbers in cases:
        names = [parameter.name for parameter in kernel.params]
        signature = {
            name: "constexpr" if name in numbers else {**usual, **types}.get(name, "i32")
            for name in names
        }
        constants = {(names.index(name),): number for name, number in numbers.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a default of the next release
            made = triton.compile(
                ASTSource(kernel, signature, constants), target=GPUTarget("cuda", CAPABILITY, 32)
            )
        print(kernel.fn.__name__, made.metadata.shared, len(made.asm["cubin"]))


def main(mode: str, *files: str) -> None:
    """As the module says."""
    if mode == "compile":
        compile_all()
        return
    source, target = map(Path, files)
    torch.save(interpret(torch.load(source)), target)


if __name__ == "__main__":
    main(*sys.argv[1:])
