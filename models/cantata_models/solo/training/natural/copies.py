"""Copies of held-out speech, judged by networks that listen, beside the teachers' own sound."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from cantata_bench.voice_quality.judges import DistillMos, Whisper, check_installed
from cantata_bench.voice_quality.measures import count_errors, prepare
from cantata_models.solo.training.natural.bank import INT16_SCALE, make_clip, to_sound
from cantata_models.solo.training.natural.filter_codec import FilterCodec
from cantata_models.solo.training.natural.shards import RATE_HZ, AnnotatedSpeech

Floats = npt.NDArray[np.float32]


def copy_speech(codec: FilterCodec, spoken: AnnotatedSpeech) -> Floats:
    """[N] float32: encoded, decoded, and as long as the original.

    The last hop, which comes out late, is silence.
    """
    copied = codec.copy(to_sound(make_clip(spoken)))[0].numpy()[: len(spoken.samples)]
    return np.pad(copied, (0, len(spoken.samples) - len(copied)))


class CopyJudge:
    """DistillMOS and Whisper's word errors, for groups of held-out speech.

    Args:
        groups: from `held_out.read_held_out`.
        folder: keeps the teachers' own figures.

    Raises:
        ConfigError: the judges are not installed.
    """

    def __init__(self, groups: Mapping[str, Sequence[AnnotatedSpeech]], folder: Path) -> None:
        check_installed()
        self._groups, self._folder = groups, folder
        self._mos, self._whisper = DistillMos(), Whisper()

    def judge_teachers(self, most: int) -> dict[str, float]:
        """The ceiling: what the judges say of the originals. Figures as `judge`'s."""
        path = self._folder / f"teachers-{most}.json"
        if not path.exists():
            figures = self._judge({name: self._load_originals(name, most) for name in self._groups})
            path.write_text(json.dumps(figures))
        found: dict[str, float] = json.loads(path.read_text())
        return found

    def judge(self, codec: FilterCodec, most: int) -> dict[str, float]:
        """Judges the first `most` sentences of each group.

        Returns:
            `mos_GROUP` from 1 to 5, and `wer_GROUP` in percent.
        """
        with torch.inference_mode():
            copies = {
                name: [copy_speech(codec, one) for one in group[:most]]
                for name, group in self._groups.items()
            }
        return self._judge(copies)

    def _load_originals(self, name: str, most: int) -> list[Floats]:
        spoken = self._groups[name][:most]
        return [one.samples.astype(np.float32) / np.float32(INT16_SCALE) for one in spoken]

    def _judge(self, sounds: Mapping[str, Sequence[Floats]]) -> dict[str, float]:
        figures = {}
        for name, group in sounds.items():
            ratings, words, errors = [], 0, 0
            for spoken, sound in zip(self._groups[name], group, strict=False):
                heard = prepare(sound, RATE_HZ)
                ratings.append(self._mos.rate(heard))
                count, wrong = count_errors(spoken.text, self._whisper.transcribe(heard))
                words, errors = words + count, errors + wrong
            figures[f"mos_{name}"] = round(float(np.mean(ratings)), 3)
            figures[f"wer_{name}"] = round(100 * errors / words, 2)
        return figures
