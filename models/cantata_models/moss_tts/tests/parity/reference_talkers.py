"""Runs the published code of both talkers, unmodified, in float32 on the CPU.

It is read from two git repositories: OpenMOSS/MOSS-TTS, which has MOSS-TTS-Local v1.5's, and one
with the files of MOSS-TTS-Nano's checkpoint.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import json
import subprocess
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from cantata_layers.checkpoint import read_tensors

LOCAL_FOLDER = "moss_tts_local_v1.5"
LOCAL_FILES = (
    "configuration_moss_tts",
    "gpt2_decoder",
    "qwen3_decoder",
    "modeling_moss_tts",
    "processing_moss_tts",
)
NANO_FOLDER = "models/llm/repo"
NANO_FILES = (
    "configuration_moss_tts_nano",
    "gpt2_decoder",
    "modeling_moss_tts_nano",
    "prompting",
    "tokenization_moss_tts_nano",
)
UNUSED = "torchaudio"
"""Both import it for recordings on disk. An empty module replaces it, and any use would fail."""


class ReferenceLocal:
    """MOSS-TTS-Local's model and processor for one checkpoint.

    Args:
        repository: git repository of the code.
        checkpoint: the model's folder.
    """

    def __init__(self, repository: Path, checkpoint: Path) -> None:
        from transformers import Qwen2Tokenizer

        package = import_package("published_moss_tts_local", repository, LOCAL_FOLDER, LOCAL_FILES)
        configuration, modeling, processing = (
            importlib.import_module(f"{package}.{name}")
            for name in ("configuration_moss_tts", "modeling_moss_tts", "processing_moss_tts")
        )
        config = configuration.MossTTSLocalConfig(**_config(checkpoint))
        self.model = modeling.MossTTSLocalModel(config)
        load(self.model, checkpoint)
        tokenizer = Qwen2Tokenizer.from_pretrained(str(checkpoint))
        self.processor = processing.MossTTSLocalProcessor(tokenizer, model_config=config)


class ReferenceNano:
    """MOSS-TTS-Nano's model and tokenizer for one checkpoint.

    Args:
        repository: git repository of the code.
        checkpoint: the model's folder.
    """

    def __init__(self, repository: Path, checkpoint: Path) -> None:
        package = import_package("published_moss_tts_nano", repository, NANO_FOLDER, NANO_FILES)
        configuration, modeling, tokenization = (
            importlib.import_module(f"{package}.{name}_moss_tts_nano")
            for name in ("configuration", "modeling", "tokenization")
        )
        config = configuration.MossTTSNanoConfig(**_config(checkpoint))
        self.model = modeling.MossTTSNanoForCausalLM(config)
        load(self.model, checkpoint)
        self.tokenizer = tokenization.MossTTSNanoSentencePieceTokenizer(
            str(checkpoint / "tokenizer.model")
        )


def load(model: Any, checkpoint: Path) -> None:
    """Load weights into a model built in memory; only heads that are tables may be missing."""
    missing, unexpected = model.load_state_dict(dict(read_tensors(checkpoint)), strict=False)
    tied = ("text_lm_head.", "audio_lm_heads.")
    assert not unexpected, unexpected
    assert all(name.startswith(tied) for name in missing), missing
    model.tie_weights()
    model.eval()


def import_package(name: str, repository: Path, folder: str, files: Sequence[str]) -> str:
    """Make a package of files in a repository and return its name."""
    if name not in sys.modules:
        unused = types.ModuleType(UNUSED)
        unused.__spec__ = importlib.machinery.ModuleSpec(UNUSED, None)
        sys.modules.setdefault(UNUSED, unused)
        parent = Path(tempfile.mkdtemp())
        (parent / name).mkdir()
        (parent / name / "__init__.py").touch()
        for file in files:
            content = read_published(repository, f"{folder}/{file}.py")
            (parent / name / f"{file}.py").write_bytes(content)
        sys.path.insert(0, str(parent))
        importlib.import_module(name)
    return name


def read_published(repository: Path, path: str) -> bytes:
    """Return a file of a repository's newest commit."""
    command = ["git", "-C", str(repository), "show", f"HEAD:{path}"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _config(checkpoint: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    return values | {
        "attn_implementation": "eager",
        "local_transformer_attn_implementation": "eager",
        "dtype": torch.float32,
    }
