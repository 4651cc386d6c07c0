"""Runs the recognisers' networks in ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def open_network(path: Path) -> Any:
    """An ONNX Runtime session for a file, on one CPU thread. It has no state, so all streams share
    it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # These networks are too small to share their work among threads.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
