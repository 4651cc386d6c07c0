"""Compares what is made of MOSS-TTS-Nano's published files with what its published code makes.

The files are too large to be kept with the goldens.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch

from cantata_layers.random_tensors import write_json
from cantata_models.moss_tts.config import NanoConfig, load_nano_config
from cantata_models.moss_tts.prompt import MossMode, MossPromptBuilder
from cantata_models.moss_tts.random_checkpoint_talker import NANO, TINY_NANO, nano_config
from cantata_models.moss_tts.splitting import split_text
from cantata_models.moss_tts.tests.parity.reference_talkers import ReferenceNano, read_published
from cantata_models.moss_tts.tests.parity.texts import PART_TOKENS, TEXTS
from cantata_models.moss_tts.tokenizers import NanoTokenizer

FILES = ("models/llm/config.json", "models/llm/tokenizer.model")
PUBLISHED_PART_TOKENS = (50, 75)
"""Most tokens of a part: of the model's own method, and of the published program."""


def check_published_files(repository: Path, reference: ReferenceNano) -> None:
    """Fail if a value, a prompt or a part of a text differs.

    Args:
        repository: git repository with the files and the code.
        reference: the code's model, of a tiny checkpoint.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_json(folder / "config.json", nano_config(NANO))
        random = load_nano_config(folder)
        for file in FILES:
            (folder / Path(file).name).write_bytes(read_published(repository, file))
        config, tokenizer = load_nano_config(folder), NanoTokenizer(folder)
        theirs = type(reference.tokenizer)(str(folder / "tokenizer.model"))
    assert config == random
    for text in TEXTS:
        for mode in (MossMode.PLAIN, MossMode.CLONE):
            _check_prompt(reference, theirs, config, tokenizer, text, mode)
        for most in (*PART_TOKENS, *PUBLISHED_PART_TOKENS):
            parts = reference.model._split_text_into_best_sentences(theirs, text, most)
            found = split_text(text, lambda part: len(tokenizer.encode(part)), most)
            wanted = parts if len(parts) > 1 else [text]
            assert [part.text for part in found] == wanted, text
    print(f"published files: prompts and parts of {len(TEXTS)} texts are equal")


def _check_prompt(
    reference: ReferenceNano,
    theirs: object,
    config: NanoConfig,
    tokenizer: NanoTokenizer,
    text: str,
    mode: MossMode,
) -> None:
    """Compare a prompt; its recording is as a tiny codec would encode it."""
    cloned = mode is MossMode.CLONE
    frames = np.arange(2 * TINY_NANO.codebooks).reshape(2, -1)
    rows, _ = reference.model.build_inference_input_ids(
        text,
        theirs,
        mode=(MossMode.CLONE if cloned else MossMode.CONTINUATION).value,
        prompt_audio_codes=torch.from_numpy(frames) if cloned else None,
    )
    prompt = MossPromptBuilder(config.tokens, tokenizer).build(text, mode)
    ours = prompt.rows([frames] if cloned else [], TINY_NANO.codebooks, TINY_NANO.codes)
    np.testing.assert_array_equal(ours, rows[0].numpy(), err_msg=text)
