"""The stages, from an empty folder to weights. Each stores its result and can run on its own."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from cantata_layers.training.loop import read_average
from cantata_models.sketch.plugin import WEIGHTS_FOLDER
from cantata_models.sketch.training.autoencoder_training import (
    for_convolutions,
    seen_pixels,
    train_decoder,
    train_encoder,
)
from cantata_models.sketch.training.checkpoint_files import (
    CODE,
    INDEX,
    TOKENIZER,
    read_autoencoder,
    read_drawer,
    write_checkpoint,
)
from cantata_models.sketch.training.examples import make_examples, vocabulary_corpus
from cantata_models.sketch.training.foretelling import read_text_encoder, train_foreteller
from cantata_models.sketch.training.latent_code import LatentCode, fit_code
from cantata_models.sketch.training.networks.autoencoder import Autoencoder, AutoencoderSize
from cantata_models.sketch.training.networks.transformer import Transformer, TransformerSize
from cantata_models.sketch.training.packages import find_sources
from cantata_models.sketch.training.picture_training import Drawer, train_drawer
from cantata_models.sketch.training.pictures import TrainingPictures, draw_pictures
from cantata_models.sketch.training.text_encoder import new_text_encoder
from cantata_models.sketch.training.words import CaptionPrompts, train_vocabulary

logger = logging.getLogger(__name__)

ENCODER_HALF = ("encoder.", "quant_conv.")
"""Names of the autoencoder's parts that write the code; the others read it."""


@dataclass(frozen=True)
class PictureTrainingMinutes:
    """Duration of each training, in minutes of one CPU thread."""

    decoder: float = 35.0
    encoder: float = 8.0
    text: float = 8.0
    drawer: float = 240.0


@dataclass(frozen=True)
class PictureWorkspace:
    """Where every stage stores its result, and where it begins."""

    folder: Path
    minutes: PictureTrainingMinutes = field(default_factory=PictureTrainingMinutes)
    weights: Path = WEIGHTS_FOLDER
    """Where the checkpoint is written; one that is there already is trained further."""
    publishing: bool = False
    """Whether to write the evaluation into the model's page."""

    @property
    def begun(self) -> bool:
        """Whether there are weights to train further."""
        return (self.weights / INDEX).exists()

    @property
    def code_path(self) -> Path:
        """The latent code."""
        return self.folder / CODE

    @property
    def tokenizer(self) -> Path:
        """The tokenizer's folder."""
        return self.folder / TOKENIZER

    def state(self, stage: str) -> Path:
        """A training's checkpoint."""
        return self.folder / f"{stage}.pt"

    def pictures(self) -> TrainingPictures:
        """The pictures that `run_data` drew."""
        return TrainingPictures.load(self.folder / "pictures.npz")

    def autoencoder(self) -> Autoencoder:
        """The shipped autoencoder, or an untrained one."""
        if self.begun:
            return read_autoencoder(self.weights)
        return Autoencoder(AutoencoderSize())

    def drawer(self) -> Drawer:
        """The shipped networks, or untrained ones."""
        if self.begun:
            return read_drawer(self.weights).train()
        prompts = CaptionPrompts(self.tokenizer)
        drawer = Drawer(Transformer(TransformerSize()), new_text_encoder(prompts), prompts)
        if self.state("text").exists():
            read_text_encoder(drawer, self.state("text"))
        return drawer


def run_data(work: PictureWorkspace) -> None:
    """Draws the pictures; fits the latent code and the vocabulary, or takes the weights' own."""
    path = work.folder / "pictures.npz"
    if not path.exists():
        draw_pictures(find_sources(work.folder / "packages")).save(path)
    pictures = work.pictures()
    logger.info("%d pictures", len(pictures.names))
    if not work.code_path.exists():
        shipped = work.begun and LatentCode.load(work.weights / CODE)
        (shipped or fit_code(seen_pixels(pictures))).save(work.code_path)
    if work.begun and not work.tokenizer.exists():
        shutil.copytree(work.weights / TOKENIZER, work.tokenizer)
    elif not work.tokenizer.exists():
        train_vocabulary(vocabulary_corpus(pictures), work.tokenizer)


def run_decoder(work: PictureWorkspace) -> None:
    """Teaches the decoder to read the latent code."""
    code, autoencoder = LatentCode.load(work.code_path), for_convolutions(work.autoencoder())
    path = work.state("decoder")
    train_decoder(autoencoder, code, work.pictures(), path, work.minutes.decoder)


def run_encoder(work: PictureWorkspace) -> None:
    """Teaches the encoder to write it."""
    code, autoencoder = LatentCode.load(work.code_path), for_convolutions(work.autoencoder())
    path = work.state("encoder")
    train_encoder(autoencoder, code, work.pictures(), path, work.minutes.encoder)


def run_text(work: PictureWorkspace) -> None:
    """Teaches the text encoder what captions look like; shipped weights know it already."""
    if not work.begun:
        examples = make_examples(work.pictures().everyday(), LatentCode.load(work.code_path))
        train_foreteller(work.drawer(), examples, work.state("text"), work.minutes.text)


def run_drawer(work: PictureWorkspace) -> None:
    """Teaches the picture network and the text encoder."""
    examples = make_examples(work.pictures().everyday(), LatentCode.load(work.code_path))
    # Weights that this folder's own training has exported meanwhile are no reason to slow down.
    further = work.begun and not work.state("text").exists()
    train_drawer(
        work.drawer(), examples, work.state("drawer"), work.minutes.drawer, further=further
    )


def run_export(work: PictureWorkspace) -> None:
    """Writes the averaged weights as a checkpoint; may be run while a training goes on."""
    drawer, autoencoder = work.drawer(), work.autoencoder()
    drawer.load_state_dict(read_average(work.state("drawer"), drawer))
    halves = read_average(work.state("decoder"), autoencoder)
    writing = read_average(work.state("encoder"), autoencoder)
    halves |= {name: writing[name] for name in writing if name.startswith(ENCODER_HALF)}
    autoencoder.load_state_dict(halves)
    code = LatentCode.load(work.code_path)
    write_checkpoint(drawer, autoencoder, code, work.tokenizer, work.weights)
    logger.info("wrote %s", work.weights)
