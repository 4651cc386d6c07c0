"""Judges how likely a moment is speech, with Silero's network from its own package, and opens such
networks in ONNX Runtime."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import NotInstalled
from cantata.speech_input.sound import HEARD_RATE, Heard


def open_network(path: Path) -> Any:
    """An ONNX Runtime session for a file, on one CPU thread. It has no state, so all streams share
    it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # These networks are too small to share their work among threads.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


_PACKAGES = ("onnxruntime", "silero_vad")
WINDOW = 512
"""Samples of one judgement (32 ms)."""
_CONTEXT = 64
"""Samples before the window that the network also sees."""
_WEIGHTS = Path("data") / "silero_vad_16k_op15.onnx"


class SpeechJudge(Protocol):
    """Follows one stream of sound and judges its windows."""

    def compute_probability(self, window: Heard) -> float:
        """The probability of speech in the next `WINDOW` samples: 0 to 1."""
        ...


class SileroJudge:
    """Silero VAD 6 at 16 kHz: an STFT, four convolutions, an LSTM cell.

    Its package imports torch, so only its file is read, by ONNX Runtime: 0.1 ms for a window on
    one core, and the api's process stays without torch.
    """

    def __init__(self) -> None:
        self._session = load_weights()
        self._state = np.zeros((2, 1, 128), np.float32)
        self._context = np.zeros((1, _CONTEXT), np.float32)
        self._rate = np.array(HEARD_RATE, np.int64)

    def compute_probability(self, window: Heard) -> float:
        samples: NDArray[np.float32] = window.astype(np.float32)[None] / np.float32(32768)
        seen = np.concatenate([self._context, samples], axis=1)
        inputs = {"input": seen, "state": self._state, "sr": self._rate}
        found, self._state = self._session.run(None, inputs)
        self._context = seen[:, -_CONTEXT:]
        return float(found[0, 0])


@cache
def load_weights() -> Any:
    """The ONNX Runtime session; it has no state, so all streams share it. The first call takes a
    moment. Raises NotInstalled: names what is missing."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise NotInstalled(
            f"finding speech in sound needs {', '.join(missing)}: pip install 'cantata[realtime]'"
        )
    return open_network(_find_weights())


def _find_weights() -> Path:
    found = find_spec("silero_vad")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / _WEIGHTS
