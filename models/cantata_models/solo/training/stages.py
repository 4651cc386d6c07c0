"""The stages, from an empty folder to weights. Each keeps its result and can be run alone."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

import torch

from cantata_models.solo.checkpoint import WEIGHTS_FOLDER, save_checkpoint
from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.networks.talker import Talker
from cantata_models.solo.training import align, audio, text
from cantata_models.solo.training.audio import Utterance
from cantata_models.solo.training.clips import ClipBank
from cantata_models.solo.training.codec import Codec, train_a, train_b
from cantata_models.solo.training.evaluate import VoiceReport, evaluate
from cantata_models.solo.training.examples import Example, make_examples
from cantata_models.solo.training.polish import polish
from cantata_models.solo.training.talker import new_talker, train_talker

logger = logging.getLogger(__name__)

UTTERANCES = 4_300
"""About three hours of speech; `hours_scale` multiplies it."""


@dataclass(frozen=True, slots=True)
class Minutes:
    """How long each training lasts, in minutes of one CPU thread."""

    codec_a: float = 22.0
    codec_b: float = 30.0
    talker: float = 55.0
    polish: float = 30.0


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where everything lies and how much of it is made."""

    folder: Path
    device: str
    workers: int
    hours_scale: float
    minutes: Minutes
    weights: Path = WEIGHTS_FOLDER
    config: SoloConfig = field(default_factory=SoloConfig)

    @property
    def sentences(self) -> Path:
        """The text, one sentence a line."""
        return self.folder / "sentences.txt"

    @property
    def audio(self) -> Path:
        """One WAV file per utterance."""
        return self.folder / "audio"

    @property
    def alignments(self) -> Path:
        """One JSON object per aligned utterance."""
        return self.folder / "alignments.jsonl"

    def utterances(self) -> tuple[Utterance, ...]:
        """Every utterance of this workspace's size."""
        count = round(UTTERANCES * self.hours_scale)
        return audio.plan_utterances(self.sentences, self.audio)[:count]

    def aligned(self) -> list[align.Alignment]:
        """The alignments, in the order of the sentences."""
        return sorted(align.read_alignments(self.alignments), key=lambda item: item.index)

    def bank(self) -> ClipBank:
        """The sound of the aligned utterances."""
        paths = [self.audio / f"{item.index:06d}.{item.voice}.wav" for item in self.aligned()]
        return ClipBank(paths, self.config.codec.samples_per_frame)


def run_text(work: Workspace) -> None:
    """Writes the sentences."""
    text.write_sentences(work.sentences, round(UTTERANCES * work.hours_scale))


def run_audio(work: Workspace) -> None:
    """Has the teachers read them."""
    audio.render_all(work.utterances(), work.workers)


def run_align(work: Workspace) -> None:
    """Finds when each phone is spoken."""
    align.align_all(work.utterances(), work.alignments, work.workers)


def run_codec_a(work: Workspace) -> Codec:
    """Trains encoder, quantiser and decoder."""
    return train_a(work.bank(), work.config.codec, work.folder, work.minutes.codec_a, work.device)


def frozen_codec(work: Workspace) -> Codec:
    """Returns codec A as trained, without training it further."""
    saved = torch.load(work.folder / "codec_a.pt", weights_only=False)
    codec = Codec(work.config.codec)
    codec.load_state_dict(saved["model"]["codec"])
    codec.tie_codebooks()
    return codec.eval()


def run_codec_b(work: Workspace) -> None:
    """Trains the decoder on the frozen codes."""
    train_b(frozen_codec(work), work.bank(), work.folder, work.minutes.codec_b, work.device)


def run_latents(work: Workspace) -> list[Example]:
    """Encodes every aligned utterance."""
    codec = frozen_codec(work)
    cache = work.folder / "examples.pt"
    found = make_examples(
        work.aligned(), work.audio, work.config, codec.encoder, codec.quantiser, cache
    )
    return sorted(found, key=lambda item: item.index)


def run_talker(work: Workspace) -> None:
    """Trains the text track and the backbone."""
    examples = run_latents(work)
    talker = new_talker(work.config, frozen_codec(work).quantiser.codebooks, examples)
    train_talker(talker, examples, work.folder, work.minutes.talker, work.device)


def best_decoder(work: Workspace) -> CodecDecoder:
    """Returns the decoder of the latest stage that there is: polish, codec B, codec A."""
    decoder = frozen_codec(work).decoder
    for name in ("codec_b", "polish"):
        path = work.folder / f"{name}.pt"
        if path.exists():
            saved = torch.load(path, weights_only=False)
            decoder.load_state_dict(saved["model"]["decoder"])
            logger.info("decoder of %s, step %d", name, saved["progress"]["step"])
    return decoder


def trained_talker(work: Workspace) -> Talker:
    """Returns the talker of the last checkpoint."""
    talker = Talker(work.config)
    saved = torch.load(work.folder / "talker.pt", weights_only=False)
    talker.load_state_dict(saved["model"]["talker"])
    logger.info("talker of step %d", saved["progress"]["step"])
    return talker.eval()


def run_polish(work: Workspace) -> None:
    """Fine-tunes the decoder on the talker's codes."""
    polish(
        best_decoder(work),
        trained_talker(work),
        run_latents(work),
        work.bank(),
        work.folder,
        work.minutes.polish,
        work.device,
    )


def run_export(work: Workspace) -> None:
    """Writes the weights that the package ships."""
    size = save_checkpoint(
        work.weights,
        work.config,
        trained_talker(work),
        best_decoder(work),
        frozen_codec(work).encoder,
    )
    logger.info("%s: %.1f MB", work.weights, size / 1e6)


def run_evaluate(work: Workspace) -> list[VoiceReport]:
    """Judges the exported weights."""
    return evaluate(work.weights, work.folder / "evaluation")
