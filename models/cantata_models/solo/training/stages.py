"""The stages, from an empty folder to weights. Each stores its result and can run on its own."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import torch

from cantata_models.solo.checkpoint import WEIGHTS_FOLDER, save_checkpoint
from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.networks.talker import SoloTalkerNetwork
from cantata_models.solo.training import align, audio, text
from cantata_models.solo.training.aligner import align_all, train_aligner
from cantata_models.solo.training.audio import TrainingUtterance
from cantata_models.solo.training.codec import TrainableCodec, train_a, train_b
from cantata_models.solo.training.crops import ClipBank
from cantata_models.solo.training.evaluation.items import Selection
from cantata_models.solo.training.evaluation.run import evaluate
from cantata_models.solo.training.evaluation.summary import Summary
from cantata_models.solo.training.examples import Example, make_examples, voice_group
from cantata_models.solo.training.losses import SoundLoss
from cantata_models.solo.training.phone_classifier import PhoneClassifier
from cantata_models.solo.training.polish import polish
from cantata_models.solo.training.speaker_vectors import SpeakerVectors, speaker_vectors
from cantata_models.solo.training.talker import new_talker, train_talker

logger = logging.getLogger(__name__)

UTTERANCES = 35_500
"""About 34 hours of speech; `hours_scale` multiplies it."""
SHARED_UTTERANCES = 14_700
"""Shared among all voices."""
MAIN_UTTERANCES = 12_800
"""Read by the main teacher alone, who reads 20 hours in total; the others read what is left."""
TAUGHT_UTTERANCES = 1_200
"""Aligned by pocketsphinx to train the aligner; read by the stock voices at their usual pace."""
CODEC_UTTERANCES = 1_500
POLISH_UTTERANCES = 1_500
"""Per stock voice, and for all pseudo-speakers together: the decoder needs every voice, not many
hours of each."""


@dataclass(frozen=True, slots=True)
class VoiceTrainingMinutes:
    """Duration of each training, in minutes of one CPU thread."""

    aligner: float = 6.0
    codec_a: float = 90.0
    codec_b: float = 90.0
    talker: float = 150.0
    polish: float = 30.0


@dataclass(frozen=True, slots=True)
class VoiceWorkspace:
    """Where every stage stores its result, and how much data it makes."""

    folder: Path
    device: str
    workers: int
    hours_scale: float
    minutes: VoiceTrainingMinutes
    weights: Path = WEIGHTS_FOLDER
    start: Path | None = None
    """Exported weights from which the codec and talker continue training."""
    config: SoloConfig = field(default_factory=SoloConfig)
    selection: Selection = field(default_factory=Selection)
    """The part to evaluate."""
    publishing: bool = False
    """Whether to write the evaluation into the model card and docs/voice."""

    @property
    def sentences(self) -> Path:
        """The text, one sentence per line."""
        return self.folder / "sentences.txt"

    @property
    def audio(self) -> Path:
        """One WAV file per utterance."""
        return self.folder / "audio"

    @property
    def alignments(self) -> Path:
        """One JSON object per aligned utterance."""
        return self.folder / "alignments.jsonl"

    def utterances(self) -> tuple[TrainingUtterance, ...]:
        """Every utterance, at this workspace's size."""
        sizes = (UTTERANCES, SHARED_UTTERANCES, MAIN_UTTERANCES)
        count, shared, main = (round(size * self.hours_scale) for size in sizes)
        return audio.plan_utterances(self.sentences, self.audio, shared, main)[:count]

    def aligned(self) -> list[align.Alignment]:
        """The alignments, in the order of the sentences."""
        return sorted(align.read_alignments(self.alignments), key=lambda item: item.index)

    def balanced(self, each: int) -> list[TrainingUtterance]:
        """The first `each` utterances of every stock voice and of all pseudo-speakers together."""
        heard: Counter[str] = Counter()
        chosen = []
        for item in self.utterances():
            voice = voice_group(item.speaker.name)
            if item.done and heard[voice] < each:
                heard[voice] += 1
                chosen.append(item)
        return chosen

    def bank(self) -> ClipBank:
        """The audio that the codec trains on."""
        paths = [item.path for item in self.balanced(CODEC_UTTERANCES)]
        return ClipBank(paths, self.config.codec.samples_per_frame)


def run_text(work: VoiceWorkspace) -> None:
    """Writes the sentences."""
    text.write_sentences(work.sentences, round(UTTERANCES * work.hours_scale))


def run_audio(work: VoiceWorkspace) -> None:
    """Renders the sentences with the teachers' voices."""
    audio.render_all(work.utterances(), work.workers)


def run_align(work: VoiceWorkspace) -> None:
    """Finds when each phone is spoken."""
    usual = [item for item in work.utterances() if item.speaker.stock and item.rate == 1.0]
    first = usual[: round(TAUGHT_UTTERANCES * min(1.0, work.hours_scale))]
    taught = align.align_some(first, work.folder / "taught.jsonl", work.workers)
    network = train_aligner(taught, work.audio, work.folder, work.config, work.minutes.aligner)
    align_all(network, work.utterances(), work.config, work.alignments, work.workers)


def sound_loss(work: VoiceWorkspace) -> SoundLoss:
    """Returns the codec's training loss; its listener is the aligner's network."""
    saved = torch.load(work.folder / "aligner.pt", weights_only=False)
    listener = PhoneClassifier(work.config)
    listener.load_state_dict(saved["model"]["network"])
    return SoundLoss(listener, work.config.codec.sample_rate)


def run_codec_a(work: VoiceWorkspace) -> TrainableCodec:
    """Trains encoder, quantizer and decoder."""
    return train_a(
        work.bank(),
        work.config.codec,
        sound_loss(work),
        work.folder,
        work.minutes.codec_a,
        work.device,
        work.start,
    )


def frozen_codec(work: VoiceWorkspace) -> TrainableCodec:
    """Returns the trained codec A, frozen."""
    saved = torch.load(work.folder / "codec_a.pt", weights_only=False)
    codec = TrainableCodec(work.config.codec)
    codec.load_state_dict(saved["model"]["codec"])
    codec.tie_codebooks()
    return codec.eval()


def run_codec_b(work: VoiceWorkspace) -> None:
    """Trains the decoder on the frozen codes."""
    train_b(
        frozen_codec(work),
        work.bank(),
        sound_loss(work),
        work.folder,
        work.minutes.codec_b,
        work.device,
    )


def run_latents(work: VoiceWorkspace) -> list[Example]:
    """Encodes every aligned utterance whose speaker has a speaker vector."""
    codec, speakers = frozen_codec(work), run_speakers(work)
    cache = work.folder / "examples.pt"
    found = make_examples(
        work.aligned(), work.audio, work.config, codec.encoder, codec.quantizer, cache
    )
    known = (item for item in found if item.speaker in speakers)
    return sorted(known, key=lambda item: item.index)


def run_speakers(work: VoiceWorkspace) -> SpeakerVectors:
    """Measures every speaker's vectors."""
    return speaker_vectors(work.utterances(), work.folder / "speakers.pt", work.workers)


def run_talker(work: VoiceWorkspace) -> None:
    """Trains the text track and the backbone."""
    examples, speakers = run_latents(work), run_speakers(work)
    books = frozen_codec(work).quantizer.codebooks
    talker = new_talker(work.config, books, examples, speakers, work.start)
    train_talker(talker, examples, speakers, work.folder, work.minutes.talker, work.device)


def best_decoder(work: VoiceWorkspace) -> CodecDecoder:
    """Returns the decoder of the latest finished stage: polish, codec B or codec A."""
    decoder = frozen_codec(work).decoder
    for name in ("codec_b", "polish"):
        path = work.folder / f"{name}.pt"
        if path.exists():
            saved = torch.load(path, weights_only=False)
            decoder.load_state_dict(saved["model"]["decoder"])
            logger.info("decoder of %s, step %d", name, saved["progress"]["step"])
    return decoder


def trained_talker(work: VoiceWorkspace) -> SoloTalkerNetwork:
    """Returns the talker from the last checkpoint."""
    talker = SoloTalkerNetwork(work.config)
    saved = torch.load(work.folder / "talker.pt", weights_only=False)
    talker.load_state_dict(saved["model"]["talker"])
    logger.info("talker of step %d", saved["progress"]["step"])
    return talker.eval()


def run_polish(work: VoiceWorkspace) -> None:
    """Fine-tunes the decoder on the talker's codes."""
    chosen = {item.index for item in work.balanced(POLISH_UTTERANCES)}
    examples = [item for item in run_latents(work) if item.index in chosen]
    paths = [work.audio / f"{item.index:06d}.{item.speaker}.wav" for item in examples]
    polish(
        best_decoder(work),
        trained_talker(work),
        examples,
        run_speakers(work),
        ClipBank(paths, work.config.codec.samples_per_frame),
        sound_loss(work),
        work.folder,
        work.minutes.polish,
        work.device,
    )


def run_export(work: VoiceWorkspace) -> None:
    """Writes the weights that ship with the package."""
    size = save_checkpoint(
        work.weights,
        work.config,
        trained_talker(work),
        best_decoder(work),
        frozen_codec(work).encoder,
    )
    logger.info("%s: %.1f MB", work.weights, size / 1e6)


def run_evaluate(work: VoiceWorkspace) -> Summary:
    """Measures the exported weights."""
    folder = work.folder / "evaluation"
    return evaluate(work.weights, folder, work.selection, work.workers, work.publishing)
