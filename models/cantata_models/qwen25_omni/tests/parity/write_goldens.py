"""Write ../goldens with the reference, transformers (`make parity MODEL=omni`)."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import Qwen2_5OmniForConditionalGeneration

from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen25_omni.random_checkpoint import TINY, token_ids, write_checkpoint
from cantata_models.qwen25_omni.tests.parity.conversations import (
    CONVERSATIONS,
    END_GAIN,
    Conversation,
)
from cantata_models.qwen25_omni.tests.parity.conversations import SEED as CONVERSATION_SEED
from cantata_models.qwen25_omni.tests.parity.reference import PADDING, Qwen25OmniReference
from cantata_models.qwen25_omni.tests.parity.scenarios import (
    GRID,
    LONG,
    PATCH,
    SCENARIOS,
    SHORT,
    SPEAKERS,
    TOKEN2WAV_SEED,
    WINDOWED,
    Qwen25OmniScenario,
    prompt_ids,
    random_codes,
    random_noise,
)

GOLDENS = Path(__file__).parents[1] / "goldens"
MIN_GAP = 1e-3
"""If the two best scores are closer than this, rounding alone could swap them."""
MEL_STRIDE, WAVE_STRIDE = 3, 37
"""Of what is kept: 37 is coprime to every rate of the vocoder, so all phases occur."""
ROW_STRIDE, SCORE_STRIDE = 5, 3
"""Of what is kept of rows and scores. Coprime to the rows' width."""
PENALTY = 1.05
"""The reference's default."""
WINDOW_NEW, WINDOW_PAST, WINDOW_AHEAD, VOCODER_SIDE = 36, 24, 12, 20
HOP = 240
PATCHES_FOR = {"pixel_values": "thinker_pixel_values"}
NEVER = -1
"""As the token that ends an answer: it has none."""

Arrays = dict[str, NDArray[Any]]


def checksum(folder: Path) -> str:
    """Return the checksum of a checkpoint's weights."""
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@contextmanager
def loaded(seed: int, end_gain: float = 1.0) -> Iterator[tuple[Path, Any]]:
    """A checkpoint's folder, and the reference's model of it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = write_checkpoint(Path(scratch), TINY, seed, end_gain=end_gain)
        kind: Any = Qwen2_5OmniForConditionalGeneration
        yield folder, kind.from_pretrained(folder, dtype=torch.float32).eval()


class Talk:
    """Notes what the reference's talker is given, and what it makes of it."""

    def __init__(self, model: Any) -> None:
        self._generate = model.talker.generate
        self._positions_of = model.talker.get_rope_index
        self.given: Mapping[str, torch.Tensor] = {}
        self.scores = torch.zeros(0)
        """[steps, V] before any processing."""
        self.said: list[int] = []
        """With the code that ended the speech."""

    def __call__(self, **given: Any) -> torch.Tensor:
        """Stands in for the talker's `generate`."""
        self.given = {k: v.clone() for k, v in given.items() if torch.is_tensor(v)}
        made = self._generate(**given, return_dict_in_generate=True, output_logits=True)
        self.scores = torch.stack(made.logits)[:, 0]
        self.said = made.sequences[0, given["input_ids"].shape[1] :].tolist()
        return torch.as_tensor(made.sequences)

    @property
    def positions(self) -> NDArray[np.float32]:
        """[3, prompt + 2]: where the talker's prompt stands."""
        given = self.given
        made, _ = self._positions_of(
            given["input_text_ids"],
            given.get("image_grid_thw"),
            attention_mask=given["attention_mask"],
        )
        positions: NDArray[np.float32] = made[:, 0, PADDING:].float().numpy()
        return positions

    @property
    def rows(self) -> NDArray[np.float32]:
        """[prompt + answer, E]: what came from the thinker."""
        begun, later = self.given["inputs_embeds"][0, PADDING:], self.given["thinker_reply_part"][0]
        return torch.cat([begun[:-2], begun[-1:], later[:-2]]).numpy()


def answer_ends_with(
    model: Any, prompt: Mapping[str, torch.Tensor], scenario: Qwen25OmniScenario
) -> int:
    """The token that is to end an answer: the one that the thinker says there."""
    said = model.thinker.generate(
        **prompt,
        max_new_tokens=scenario.answer,
        do_sample=False,
        eos_token_id=NEVER,
    )[0, prompt["input_ids"].shape[1] :].tolist()
    assert said.index(said[-1]) == len(said) - 1, f"{scenario.name}: {said} says its end twice"
    return int(said[-1])


def speak(model: Any, folder: Path, scenario: Qwen25OmniScenario) -> Arrays:
    """Return the arrays of one golden."""
    ids = prompt_ids(load_qwen_tokenizer(folder), scenario.turns)
    pad = token_ids(TINY)["<|endoftext|>"]
    prompt = {
        "input_ids": torch.tensor([[pad] * PADDING + ids]),
        "attention_mask": torch.tensor([[0] * PADDING + [1] * len(ids)]),
    }
    if frames := sum(turn.sound_frames for turn in scenario.turns):
        mel = np.random.RandomState(3).random_sample((1, 128, frames)) * 2 - 1
        prompt["input_features"] = torch.from_numpy(mel).float()
        prompt["feature_attention_mask"] = torch.ones(1, frames, dtype=torch.int64)
    if scenario.has_picture:
        patches = np.random.RandomState(4).random_sample((math.prod(GRID), PATCH)) * 2 - 1
        prompt["pixel_values"] = torch.from_numpy(patches).float()
        prompt["image_grid_thw"] = torch.tensor([GRID])
    end = NEVER if scenario.cut else answer_ends_with(model, prompt, scenario)
    codec = model.config.talker_config
    stops = [codec.tts_codec_pad_token_id, codec.tts_codec_end_token_id]
    talk = Talk(model)
    silent = patch.object(model.token2wav, "forward", lambda *given, **named: torch.zeros(1))
    with silent, patch.object(model.talker, "generate", talk):
        model.generate(
            # The talker needs the picture's size, for its positions, and refuses its patches.
            **{PATCHES_FOR.get(name, name): value for name, value in prompt.items()},
            speaker=scenario.speaker,
            thinker_max_new_tokens=scenario.answer,
            thinker_do_sample=False,
            thinker_eos_token_id=end,
            talker_max_new_tokens=scenario.max_frames,
            talker_do_sample=False,
            talker_repetition_penalty=scenario.penalty,
            talker_eos_token_id=stops,
        )
    codes = [code for code in talk.said if code not in stops]
    assert max(codes) < codec.tts_codec_pad_token_id, f"{codes}: not all can be decoded"
    gap = smallest_gap(talk.scores, talk.said, codec, scenario.penalty)
    ending = {stops[0]: "pad", stops[1]: "end"}.get(talk.said[-1], "length")
    distinct = len(set(codes))
    print(
        f"{scenario.name}: {len(ids)} + {len(talk.rows) - len(ids)} rows, {len(codes)} "
        f"codes ({distinct} distinct), by {ending}, gap {gap:.1e}"
        f"{'  TOO NEAR' if gap < MIN_GAP else ''}",
        flush=True,
    )
    return {
        "prompt_rows": np.array(len(ids)),
        "rows": talk.rows,
        "positions": talk.positions,
        "codes": np.array(codes, np.int16),
        "scores": talk.scores.numpy(),
        "ending": np.array(ending),
    }


def smallest_gap(scores: torch.Tensor, said: list[int], codec: Any, penalty: float) -> float:
    """The smallest gap between the two best scores in the reference's choices.

    Raises:
        ValueError: our version of the reference's rules would have chosen other codes.
    """
    smallest, counted = float("inf"), {codec.tts_codec_mask_token_id, codec.tts_codec_pad_token_id}
    for step, code in enumerate(said):
        row = scores[step].clone()
        for seen in counted:
            row[seen] = row[seen] / penalty if row[seen] > 0 else row[seen] * penalty
        row[[codec.tts_codec_start_token_id, codec.tts_codec_mask_token_id]] = -torch.inf
        top = torch.topk(row, 2)
        if int(top.indices[0]) != code:
            raise ValueError(f"step {step}: expected {code}, found {int(top.indices[0])}")
        smallest = min(smallest, float(top.values[0] - top.values[1]))
        counted.add(code)
    return smallest


class Sound:
    """The reference's decoder with given noise."""

    def __init__(self, model: Any, speaker: str, count: int) -> None:
        self._token2wav, self._speaker = model.token2wav, model.speaker_map[speaker]
        config = model.config.token2wav_config.dit_config
        self.codes = torch.from_numpy(random_codes(count, config.num_embeds))
        self.noise = torch.from_numpy(random_noise(2 * count, config.mel_dim))

    def mel(self, start: int, end: int) -> torch.Tensor:
        """[L, M] of codes start..end, made at once."""
        noise = self.noise[None, 2 * start : 2 * end].clone()
        with patch("torch.randn", lambda *given, **named: noise):
            mel = self._token2wav.code2wav_dit_model.sample(
                self._speaker["cond"], self._speaker["ref_mel"], self.codes[None, start:end]
            )
        return torch.as_tensor(mel[0].t())

    @torch.inference_mode()
    def wave(self, mel: torch.Tensor) -> torch.Tensor:
        """[L, M] -> [N]."""
        return torch.as_tensor(self._token2wav.code2wav_bigvgan_model(mel.t()[None]))


def decode_windows(sound: Sound) -> tuple[torch.Tensor, torch.Tensor]:
    """The spectrogram and the wave by windows, written down from their definition."""
    count, mels = len(sound.codes), list[torch.Tensor]()
    for start in range(0, count, WINDOW_NEW):
        past = max(0, start - WINDOW_PAST)
        ahead = min(count, start + WINDOW_NEW + WINDOW_AHEAD)
        new = min(count, start + WINDOW_NEW) - start
        mels.append(sound.mel(past, ahead)[2 * (start - past) :][: 2 * new])
    mel = torch.cat(mels)
    waves, ends = [], [*range(2 * WINDOW_NEW, 2 * count, 2 * WINDOW_NEW), 2 * count]
    heard = 0
    for end in ends:
        first = max(0, heard - VOCODER_SIDE)
        until = end if end == 2 * count else end - VOCODER_SIDE
        wave = sound.wave(mel[first:end])
        waves.append(wave[(heard - first) * HOP : (until - first) * HOP])
        heard = until
    return mel, torch.cat(waves)


def decode(model: Any, arrays: Arrays) -> None:
    """Add the goldens of the decoder."""

    def keep(name: str, mel: torch.Tensor, wave: torch.Tensor) -> None:
        arrays[f"{name}/mel"] = mel[::MEL_STRIDE].numpy()
        arrays[f"{name}/wave"] = wave[::WAVE_STRIDE].numpy()
        print(f"{name}: mel {mel.min():.1f}..{mel.max():.1f}, wave rms {wave.std():.3f}")

    for speaker in SPEAKERS:
        for count in (SHORT, LONG):
            sound = Sound(model, speaker, count)
            mel = sound.mel(0, count)
            keep(f"whole {speaker} {count}", mel, sound.wave(mel))
    for count in WINDOWED:
        keep(f"windows {count}", *decode_windows(Sound(model, SPEAKERS[0], count)))


def converse(reference: Qwen25OmniReference, codec: Any, conversation: Conversation) -> Arrays:
    """Return the arrays of one conversation's golden."""
    seen = reference.answer(conversation)
    scores = torch.stack(seen.scores)
    best = torch.topk(scores, 2).values
    gap, codes = float((best[:, 0] - best[:, 1]).min()), list[int]()
    arrays: Arrays = {
        "tokens": seen.tokens.astype(np.int16),
        "positions": seen.positions,
        "answer": seen.answer.astype(np.int16),
        "scores": scores.numpy()[:, ::SCORE_STRIDE],
    }
    if seen.code_scores is not None:
        assert seen.talker_positions is not None
        gap = min(gap, smallest_gap(seen.code_scores, seen.said, codec, PENALTY))
        stops = (codec.tts_codec_pad_token_id, codec.tts_codec_end_token_id)
        codes = [code for code in seen.said if code not in stops]
        assert max(codes) < codec.tts_codec_pad_token_id, f"{codes}: not all can be decoded"
        arrays |= {
            "rows": seen.rows[:, ::ROW_STRIDE],
            "talker_positions": seen.talker_positions,
            "codes": np.array(codes, np.int16),
        }
    print(
        f"{conversation.name}: {len(seen.tokens)} tokens, answer {len(seen.answer)}"
        f"{'' if seen.answer[-1] == reference.end else ', cut'}, {len(codes)} codes"
        f"{'' if len(codes) < len(seen.said) else ', cut'}, gap {gap:.1e}"
        f"{'  TOO NEAR' if gap < MIN_GAP else ''}",
        flush=True,
    )
    return arrays


def write_conversations() -> None:
    """Write the goldens of whole conversations."""
    with loaded(CONVERSATION_SEED, END_GAIN) as (folder, model):
        arrays: Arrays = {"checksum": np.array(checksum(folder))}
        reference = Qwen25OmniReference(folder, model)
        for one in CONVERSATIONS:
            golden = converse(reference, model.config.talker_config, one)
            arrays |= {f"{one.name}/{name}": value for name, value in golden.items()}
    np.savez_compressed(GOLDENS / "conversations.npz", allow_pickle=False, **arrays)


def main() -> None:
    """Make the checkpoints, run the reference, write the goldens."""
    torch.set_num_threads(1)
    write_conversations()
    talker: Arrays = {}
    for seed in sorted({scenario.seed for scenario in SCENARIOS}):
        with loaded(seed) as (folder, model):
            talker[f"checksum {seed}"] = np.array(checksum(folder))
            for scenario in (one for one in SCENARIOS if one.seed == seed):
                golden = speak(model, folder, scenario)
                talker |= {f"{scenario.name}/{name}": value for name, value in golden.items()}
    np.savez_compressed(GOLDENS / "talker.npz", allow_pickle=False, **talker)
    with loaded(TOKEN2WAV_SEED) as (folder, model):
        sound: Arrays = {"checksum": np.array(checksum(folder))}
        decode(model, sound)
    np.savez_compressed(GOLDENS / "token2wav.npz", allow_pickle=False, **sound)


if __name__ == "__main__":
    main()
