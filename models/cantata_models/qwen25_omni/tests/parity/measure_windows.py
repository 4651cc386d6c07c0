"""How far decoding in windows is from decoding everything at once, and how long a window takes.

    python -m cantata_models.qwen25_omni.tests.parity.measure_windows [--published]

With random weights: the distance depends on how much blocks tell each other, so it says little
about the published weights; the time depends on shapes alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import torch

from cantata.config import CodecDeployment
from cantata.contract.data.chunks import Chunk, Codes, Pcm
from cantata.contract.model.pipeline import CODES
from cantata.stages.codec import CodecStage
from cantata_layers.random_tensors import write_json, write_tensors
from cantata_models.qwen25_omni.random_checkpoint import (
    PUBLISHED,
    TINY,
    Qwen25OmniShape,
    checkpoint_tensors,
    model_config,
    token_ids,
    write_speakers,
)
from cantata_models.qwen25_omni.rows import Token2WavInput
from cantata_models.qwen25_omni.speakers import FILE
from cantata_models.qwen25_omni.tests.parity.scenarios import random_codes
from cantata_models.qwen25_omni.token2wav import (
    AHEAD_BLOCKS,
    NEW_BLOCKS,
    PAST_BLOCKS,
    VOCODER_CONTEXT,
    WindowDecoder,
    block_noise,
    load_decoder,
)

CPU = torch.device("cpu")
SPEAKER, SEED = "Chelsie", 5
CODES_COMPARED = 500
"""Ten seconds of sound."""


def write_decoder(folder: Path, shape: Qwen25OmniShape, seed: int) -> WindowDecoder:
    """Write what the decoder reads of a checkpoint, and load it."""
    config = model_config(shape)
    write_json(folder / "config.json", config)
    specs = (spec for spec in checkpoint_tensors(config) if spec.name.startswith("token2wav."))
    write_tensors(folder / "model.safetensors", specs, seed, torch.float32)
    write_speakers(folder / FILE, token_ids(shape), seed)
    return load_decoder(folder, CPU)


def stream(decoder: WindowDecoder, count: int) -> torch.Tensor:
    """The sound of so many codes as a stage decodes it: [N]."""
    deployment = CodecDeployment(slots=1, credit_s=3600.0)
    stage = CodecStage(decoder, deployment)
    stage.add("a", Token2WavInput(SPEAKER, SEED), batch=True)
    codes = random_codes(count, decoder.codebook_size).astype("i4")[:, None]
    stage.receive([Chunk("a", CODES, 0, Codes(codes), True)])
    parts = []
    while stage.has_work():
        for chunk in stage.step().chunks:
            assert isinstance(chunk.payload, Pcm)
            parts.append(torch.from_numpy(chunk.payload.samples[:, 0]))
    return torch.cat(parts)


@torch.inference_mode()
def compare(decoder: WindowDecoder) -> tuple[float, float]:
    """The errors of the spectrogram, over its spread in time, and of the wave, over its own size;
    both root mean square, against decoding everything at once."""
    networks = decoder._networks
    dit, wave_of, seen = networks.config.dit, networks.wave, list[torch.Tensor]()
    codes = torch.from_numpy(random_codes(CODES_COMPARED, decoder.codebook_size))
    noise = block_noise(SEED, 0, CODES_COMPARED * dit.repeats, dit.block_size, dit.mels)
    whole = networks.mel(codes, networks.speaker(SPEAKER), noise)
    wave = networks.wave(whole)

    def watched(mel: torch.Tensor) -> torch.Tensor:
        seen.append(mel[2 * VOCODER_CONTEXT :] if seen else mel)
        return wave_of(mel)

    with patch.object(networks, "wave", watched):
        streamed = stream(decoder, CODES_COMPARED)
    mel_error = (torch.cat(seen) - whole).square().mean().sqrt()
    wave_error = (streamed - wave).square().mean().sqrt()
    spread = whole.var(dim=0).mean().sqrt()
    return float(mel_error / spread), float(wave_error / wave.std())


@torch.inference_mode()
def time_window(decoder: WindowDecoder) -> tuple[float, float]:
    """Seconds for a window's spectrogram, and for its wave."""
    networks = decoder._networks
    dit = networks.config.dit
    blocks = PAST_BLOCKS + NEW_BLOCKS + AHEAD_BLOCKS
    codes = torch.from_numpy(random_codes(blocks * dit.block_codes, decoder.codebook_size))
    noise = block_noise(SEED, 0, blocks * dit.block_size, dit.block_size, dit.mels)
    times = [time.perf_counter()]
    mel = networks.mel(codes, networks.speaker(SPEAKER), noise)
    times.append(time.perf_counter())
    networks.wave(mel[: 2 * VOCODER_CONTEXT + NEW_BLOCKS * dit.block_size])
    times.append(time.perf_counter())
    return times[1] - times[0], times[2] - times[1]


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--published", action="store_true", help="time the 7B's decoder (4 GB)")
    with tempfile.TemporaryDirectory() as scratch:
        if parser.parse_args().published:
            decoder = write_decoder(Path(scratch), PUBLISHED, 1)
            mel_s, wave_s = time_window(decoder)
            threads = torch.get_num_threads()
            print(f"mel {mel_s:.1f} s, wave {wave_s:.1f} s a window, {threads} threads")
            return
        for seed in (1, 2, 3):
            mel, wave = compare(write_decoder(Path(scratch), TINY, seed))
            print(f"seed {seed}: mel {mel:.1e}, wave {wave:.1e}", flush=True)


if __name__ == "__main__":
    main()
