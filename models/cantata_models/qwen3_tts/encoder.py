"""What the encoder stage makes of a recording: its speaker's vector, and its frames of codes.

The frames come from the tokenizer's Mimi encoder, as implemented in transformers. Only the encoding
half is built; the whole model in transformers would include an unused decoder of the same size.
Only the quantizer's codebooks that the published tokenizer uses are kept. The speaker's vector is
made by an ECAPA-TDNN over a log-mel spectrogram.

Letters: N samples, T frames, Q codebooks, M mels, E vector size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers import MimiConfig
from transformers.audio_utils import mel_filter_bank
from transformers.models.mimi.modeling_mimi import (
    MimiConv1d,
    MimiEncoder,
    MimiSplitResidualVectorQuantizer,
    MimiTransformerModel,
)

from cantata.contract.data.chunks import Codes, Payload, Rows
from cantata.contract.data.errors import CantataError, ConfigError, InvalidAudio
from cantata_layers.ecapa import Ecapa
from cantata_layers.ecapa_config import EcapaConfig
from cantata_layers.json_fields import read_json
from cantata_layers.weights import WeightMap
from cantata_models.qwen3_tts.codec import FOLDER
from cantata_models.qwen3_tts.prompt import Qwen3TtsEncoderInput

SAMPLE_RATE = 24_000


SPEAKER = WeightMap({"speaker_encoder.{}": "{}"})


SPEAKER_SIZES = EcapaConfig(
    mels=128,
    size=1024,
    channels=(512, 512, 512, 512, 1536),
    kernels=(5, 3, 3, 3, 1),
    dilations=(1, 2, 3, 4, 1),
    attention_channels=128,
    parts=8,
    squeezed_channels=128,
)


def load_speaker_config(checkpoint: Path) -> EcapaConfig:
    """Read the sizes from a checkpoint's config.json.

    Raises:
        ConfigError: a value is wrong or not served.
    """
    fields = read_json(checkpoint / "config.json").section("speaker_encoder_config")
    fields.expect("sample_rate", SAMPLE_RATE, default=SAMPLE_RATE)
    return fields.read(EcapaConfig, SPEAKER_SIZES)


NAMES = WeightMap({"encoder.{}": "{}"})
UNLIMITED = 1 << 30
"""Number of positions that a position attends to. The checkpoints say 250 (ten seconds). But the
transformers release pinned by the published package attends to the whole past, and so its codes
depend on it."""
DOWNSAMPLING = 2
"""Transformer positions per frame."""


class Qwen3TtsFrameEncoder(nn.Module):
    """Encodes a recording to frames for a cloned voice's prompt."""

    def __init__(self, config: MimiConfig, sample_rate: int, samples_per_frame: int) -> None:
        super().__init__()
        self.sample_rate, self.samples_per_frame = sample_rate, samples_per_frame
        self.num_codebooks: int = config.num_quantizers
        self.encoder = MimiEncoder(config)
        self.encoder_transformer = MimiTransformerModel(config)
        self.downsample = MimiConv1d(
            config,
            config.hidden_size,
            config.hidden_size,
            kernel_size=2 * DOWNSAMPLING,
            stride=DOWNSAMPLING,
            bias=False,
            pad_mode="replicate",
        )
        self.quantizer = MimiSplitResidualVectorQuantizer(config)

    @torch.inference_mode()
    def encode(self, samples: torch.Tensor) -> torch.Tensor:
        """Encode a whole recording.

        Args:
            samples: [N] float32 mono at `sample_rate`, N >= 1.

        Returns:
            [T, Q] int64; the last frame may extend beyond the recording.
        """
        hidden = self.encoder(samples[None, None])
        hidden = self.encoder_transformer(hidden.transpose(1, 2)).last_hidden_state
        codes = self.quantizer.encode(self.downsample(hidden.transpose(1, 2)))
        frames = -(-len(samples) // self.samples_per_frame)
        return torch.as_tensor(codes[:, 0, :frames].t())


def load_encoder(checkpoint: Path) -> Qwen3TtsFrameEncoder:
    """Load the encoding half of a checkpoint's speech tokenizer, in fp32.

    Raises:
        ConfigError: the folder holds no such checkpoint.
    """
    root = read_json(checkpoint / FOLDER / "config.json")
    used = root.get("encoder_valid_num_quantizers", int)
    fields = dict(root.items("encoder_config")) | {
        "num_quantizers": used,
        "sliding_window": UNLIMITED,
        "attn_implementation": "eager",
    }
    try:
        config = MimiConfig(**fields)
        encoder = Qwen3TtsFrameEncoder(
            config,
            root.get("input_sample_rate", int),
            root.get("encode_downsample_rate", int),
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{root.where}: encoder_config is not usable: {error}") from error
    folder, wanted = checkpoint / FOLDER, encoder.state_dict()
    read = NAMES.read(folder)
    tensors = ((name, tensor.float()) for name, tensor in read if NAMES.own(name) in wanted)
    NAMES.fill(encoder, tensors, folder)
    return encoder


FFT_SIZE = 1024
HOP = 256
MAX_FREQUENCY = 12_000.0
POWER_FLOOR = 1e-9
LOG_FLOOR = 1e-5
MIN_SAMPLES = 2_400
"""A tenth of a second. In a shorter recording the reflected edges would reach beyond its end."""


class Qwen3TtsLogMel(nn.Module):
    """[N] samples -> [T, M] log magnitudes."""

    window: torch.Tensor
    filters: torch.Tensor

    def __init__(self, mels: int) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(FFT_SIZE), persistent=False)
        filters = mel_filter_bank(
            num_frequency_bins=FFT_SIZE // 2 + 1,
            num_mel_filters=mels,
            min_frequency=0.0,
            max_frequency=MAX_FREQUENCY,
            sampling_rate=SAMPLE_RATE,
            norm="slaney",
            mel_scale="slaney",
        )
        self.register_buffer("filters", torch.from_numpy(filters).float(), persistent=False)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        side = (FFT_SIZE - HOP) // 2
        padded = functional.pad(samples[None], (side, side), mode="reflect")[0]
        spectrum = torch.fft.rfft(padded.unfold(0, FFT_SIZE, HOP) * self.window)
        power = spectrum.real.square() + spectrum.imag.square()
        mels = torch.sqrt(power + POWER_FLOOR) @ self.filters
        return torch.log(mels.clamp(min=LOG_FLOOR))


class Qwen3TtsSpeakerEncoder(Ecapa):
    """Converts a recording to the vector that represents its speaker in a prompt."""

    def __init__(self, config: EcapaConfig) -> None:
        super().__init__(config)
        self.mel = Qwen3TtsLogMel(config.mels)

    @torch.inference_mode()
    def embed(self, samples: torch.Tensor) -> torch.Tensor:
        """Compute a speaker's vector.

        Args:
            samples: [N] float32 mono at 24 kHz.

        Returns:
            [E] float32.

        Raises:
            InvalidAudio: the recording is shorter than a tenth of a second.
        """
        if len(samples) < MIN_SAMPLES:
            raise InvalidAudio(
                f"the reference has {len(samples) / SAMPLE_RATE:.2f} s of sound; a speaker's "
                f"vector needs at least {MIN_SAMPLES / SAMPLE_RATE:.1f} s"
            )
        return torch.as_tensor(self(self.mel(samples).t()[None])[0])


def load_speaker_encoder(checkpoint: Path) -> Qwen3TtsSpeakerEncoder:
    """Load a base checkpoint's speaker encoder, in fp32.

    Raises:
        ConfigError: the folder holds no such checkpoint.
    """
    encoder = Qwen3TtsSpeakerEncoder(load_speaker_config(checkpoint))
    tensors = ((name, tensor.float()) for name, tensor in SPEAKER.read(checkpoint))
    SPEAKER.fill(encoder, tensors, checkpoint)
    return encoder


class RecordingEncoders:
    """Implements `contract.model.feed_forward.FeedForward` with a checkpoint's own encoders."""

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        self._device = device
        self._speaker_encoder = load_speaker_encoder(checkpoint).to(device)
        self._codec_encoder = load_encoder(checkpoint).to(device)

    def key(self, inputs: Qwen3TtsEncoderInput) -> bytes:
        """Hash of the samples and of what is made of them."""
        return hashlib.sha256(inputs.samples.tobytes() + bytes([inputs.frames])).digest()

    def run(
        self, batch: Sequence[Qwen3TtsEncoderInput]
    ) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode recordings one after the other: padded to one length, they would influence each
        other."""
        return [self._encode(inputs) for inputs in batch]

    def _encode(self, inputs: Qwen3TtsEncoderInput) -> Mapping[str, Payload] | CantataError:
        sound = torch.from_numpy(inputs.samples).to(self._device)
        try:
            speaker = self._speaker_encoder.embed(sound)
        except CantataError as error:
            return error
        encoder = self._codec_encoder
        frames = np.zeros((0, encoder.num_codebooks), np.int32)
        if inputs.frames:
            frames = encoder.encode(sound).cpu().numpy().astype(np.int32)
        return {"speaker": Rows(speaker[None].cpu().numpy()), "frames": Codes(frames)}
