"""Write ../goldens with the reference package: `make parity MODEL=qwen3_tts`."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.qwen3_tts.random_checkpoint import write_checkpoint
from cantata_models.qwen3_tts.tests.parity.recordings import SAMPLE_RATE, random_frames, recording
from cantata_models.qwen3_tts.tests.parity.reference_package import (
    Observer,
    QuantizerGap,
    load_model,
    speak,
)
from cantata_models.qwen3_tts.tests.parity.scenarios import (
    SCENARIOS,
    SHAPES,
    CheckpointKey,
    Qwen3TtsScenario,
)

GOLDENS = Path(__file__).parents[1] / "goldens"
MIN_GAP = 1e-3
"""If the two best scores are closer than this, rounding alone could swap them."""
MIN_QUANTIZER_GAP = 5e-5
"""The same for distances to codebook entries, which involve fewer sums."""
PCM_STRIDE = 37
"""Every 37th sample is kept. 37 is coprime to every rate of the codec, so all phases occur."""
MEL_STRIDE = 5
RESERVED = 1024
RECORDINGS = (1.013, 2.5)
"""In seconds. The first ends inside a frame; the second is longer than the encoder's window."""
SHORT_FRAMES = 130
LONG_FRAMES = 330
CODEC_CHECKPOINT = CheckpointKey("small", "base", 1)

Arrays = dict[str, NDArray[Any]]


def checksum(folder: Path) -> str:
    """Return the checksum of a checkpoint's two weight files."""
    digest = hashlib.sha256()
    for name in ("model.safetensors", "speech_tokenizer/model.safetensors"):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def spoken(scores: torch.Tensor, codes: int, end: int) -> torch.Tensor:
    """Return the scores of the codes that may be chosen: [codes + 1], the end code last."""
    return torch.cat([scores[..., :codes], scores[..., end : end + 1]], dim=-1)


def first_gap(scores: torch.Tensor, frames: NDArray[np.int64], penalty: float) -> float:
    """Return the smallest gap between the two best scores of code 0 in the reference's choices.

    Args:
        scores: [steps, codes + 1] before any processing, the end code last.

    Raises:
        ValueError: our version of the reference's rules would have chosen other frames.
    """
    smallest, said = float("inf"), frames[:, 0]
    for step, raw in enumerate(scores):
        row = raw.clone()
        for code in set(said[:step].tolist()):
            row[code] = row[code] / penalty if row[code] > 0 else row[code] * penalty
        if step < 2:
            row[-1] = -torch.inf
        best = torch.topk(row, 2)
        if step < len(said) and int(best.indices[0]) != said[step]:
            raise ValueError(f"step {step}: expected {said[step]}, found {int(best.indices[0])}")
        smallest = min(smallest, float(best.values[0] - best.values[1]))
    return smallest


def observe(model: Any, scenario: Qwen3TtsScenario) -> dict[str, NDArray[Any]]:
    """Synthesize one scenario and return the arrays of its golden."""
    observer = Observer(model)
    try:
        samples = speak(model, scenario)
    finally:
        observer.close()
    assert observer.codes is not None
    assert observer.rows is not None
    assert observer.trailing is not None
    talker = model.model.config.talker_config
    codes, end = talker.vocab_size - RESERVED, talker.codec_eos_token_id
    scores = spoken(torch.stack(observer.first_scores), codes, end)
    gap = min(first_gap(scores, observer.codes, scenario.repetition_penalty), observer.residual_gap)
    residual = np.array(observer.residual_scores, np.float32)
    golden: Arrays = {
        "rows": observer.rows,
        "trailing": observer.trailing,
        "codes": observer.codes.astype(np.int16),
        "first_scores": scores.numpy(),
        "residual_scores": residual.reshape(len(observer.codes), -1),
        "smallest_gap": np.array(gap, np.float32),
        "samples": np.array(len(samples)),
    }
    if scenario.recording_seconds is not None:
        golden |= reference_features(model, scenario.recording_seconds)
    if scenario.reference_text is not None:
        golden["pcm"] = samples[::PCM_STRIDE]
    return golden


def reference_features(model: Any, seconds: float) -> dict[str, NDArray[Any]]:
    """Return the reference's encodings of a recording: frames and speaker vector."""
    wave = recording(seconds)
    gap = QuantizerGap(model)
    items = model.create_voice_clone_prompt((wave, SAMPLE_RATE), ref_text="unused")
    gap.close()
    if gap.smallest < MIN_QUANTIZER_GAP:
        print(f"recording of {seconds} s: quantizer gap {gap.smallest:.1e}  TOO NEAR")
    return {
        "reference_codes": items[0].ref_code.numpy().astype(np.int16),
        "speaker": items[0].ref_spk_embedding.numpy(),
    }


def write_talker_goldens(model: Any, scenarios: list[Qwen3TtsScenario], arrays: Arrays) -> None:
    """Add every scenario's prompt, frames and scores."""
    for scenario in scenarios:
        golden = observe(model, scenario)
        arrays |= {f"{scenario.name}/{name}": value for name, value in golden.items()}
        frames, gap = golden["codes"], float(golden["smallest_gap"])
        ended = "end code" if len(frames) < scenario.max_new_tokens - 1 else "length"
        distinct = len({tuple(frame) for frame in frames.tolist()})
        print(
            f"{scenario.name}: {len(frames)} frames ({distinct} distinct), by {ended}, "
            f"gap {gap:.1e}{'  TOO NEAR' if gap < MIN_GAP else ''}",
            flush=True,
        )


@torch.inference_mode()
def write_codec_goldens(model: Any, arrays: Arrays) -> None:
    """Add whole and windowed decoding, encoding and speaker features."""
    from qwen_tts.core.models.modeling_qwen3_tts import mel_spectrogram

    tokenizer = model.model.speech_tokenizer.model
    config = tokenizer.decoder.config
    frames = random_frames(LONG_FRAMES, config.num_quantizers, config.codebook_size)
    codes = torch.from_numpy(frames).T[None]
    short = codes[..., :SHORT_FRAMES]
    whole = tokenizer.decoder(short)[0, 0].numpy()
    print(f"codec: samples within {whole.min():.2f}..{whole.max():.2f}, rms {whole.std():.2f}")
    arrays["whole"] = whole[::PCM_STRIDE]
    windowed = tokenizer.decoder.chunked_decode(short, 25, 25)[0, 0].numpy()
    arrays["windowed_25_25"] = windowed[::PCM_STRIDE]
    arrays["windowed_300_25"] = tokenizer.decoder.chunked_decode(codes)[0, 0].numpy()[::PCM_STRIDE]
    print(f"codec: 25/25 differs from the whole by rms {(windowed - whole).std():.4f}")
    for seconds in RECORDINGS:
        features = reference_features(model, seconds)
        distinct = len(np.unique(features["reference_codes"], axis=0))
        print(f"recording of {seconds} s: {distinct} distinct frames")
        arrays |= {f"recording_{seconds}/{name}": value for name, value in features.items()}
    wave = torch.from_numpy(recording(RECORDINGS[0]))[None]
    mel = mel_spectrogram(wave, 1024, 128, SAMPLE_RATE, 256, 1024, 0, 12_000)
    arrays["mel"] = mel[0].T.numpy()[::MEL_STRIDE]


def main() -> None:
    """Make the checkpoints, run the reference, write the goldens."""
    GOLDENS.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    by_checkpoint: dict[CheckpointKey, list[Qwen3TtsScenario]] = {}
    for scenario in SCENARIOS:
        by_checkpoint.setdefault(scenario.checkpoint, []).append(scenario)
    sums: dict[str, str] = {}
    talker: Arrays = {}
    codec: Arrays = {}
    for key, scenarios in by_checkpoint.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder = write_checkpoint(Path(scratch), SHAPES[key.shape], key.kind, key.seed)
            sums[key.name] = checksum(folder)
            model = load_model(folder)
        write_talker_goldens(model, scenarios, talker)
        if key == CODEC_CHECKPOINT:
            write_codec_goldens(model, codec)
    (GOLDENS / "checksums.json").write_text(json.dumps(sums, indent=2) + "\n")
    for name, arrays in (("talker.npz", talker), ("codec.npz", codec)):
        np.savez_compressed(GOLDENS / name, allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
