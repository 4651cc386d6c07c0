"""The servers that are compared: how each is started, and how it is asked to speak."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cantata.contract.data.errors import ConfigError
from cantata.pipeline.local import find_model

WAV_HEADER = 44
"""Bytes in front of the samples."""
_HEARD_BESIDE_PIPER = "heart"
"""Of the shipped voices, the one of a small network that plans sentences, as Piper's do."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A server of speech in 16-bit samples of one channel."""

    name: str
    command: tuple[str, ...]
    """Its arguments; `{port}` stands for the port on 127.0.0.1."""
    route: str
    """POST."""
    body: Mapping[str, Any]
    """A value `{text}` stands for the text."""
    sample_rate: int
    """Hz."""
    header_bytes: int = 0
    is_form: bool = False
    """The body is a form, not JSON."""
    ready_route: str = "/"
    """GET answers once the server can speak."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """`{port}` as in the command."""

    def ask(self, text: str) -> dict[str, Any]:
        """The arguments of the request for httpx."""
        body = {key: text if value == "{text}" else value for key, value in self.body.items()}
        return {"data" if self.is_form else "json": body}


def cantata(model: str | None, voice: str | None = None) -> Contender:
    """This server, with one model.

    Args:
        model: as `cantata serve --model` takes it; None is the default one.
        voice: None is the model's first.
    """
    named = {} if voice is None else {"voice": voice}
    served = () if model is None else ("--model", model)
    return Contender(
        "cantata",
        (sys.executable, "-m", "cantata", "serve", "--port", "{port}", *served),
        "/v1/audio/speech",
        {"input": "{text}", "response_format": "pcm", **named},
        24_000,
        ready_route="/ready",
    )


def fastkokoro(python: str, folder: Path) -> Contender:
    """The server of the package fastkokoro: Kokoro-82M in ONNX Runtime.

    Args:
        python: of the environment that has it.
        folder: with the files of kokoro-onnx.
    """
    network = _find_only(folder, "*.onnx")
    return Contender(
        "fastkokoro",
        (python, "-c", "from fastkokoro.cli import main; main()"),
        "/v1/audio/speech",
        {"input": "{text}", "response_format": "pcm", "voice": "af_heart", "stream": True},
        24_000,
        ready_route="/v1/models",
        environment={
            "FASTKOKORO_MODEL_PATH": str(network),
            "FASTKOKORO_VOICES_PATH": str(_rename_as_npz(_find_only(folder, "voices-*.bin"))),
            "FASTKOKORO_HOST": "127.0.0.1",
            "FASTKOKORO_PORT": "{port}",
        },
    )


def pocket_tts(python: str, folder: Path) -> Contender:
    """The server of the package pocket-tts.

    Args:
        python: of the environment that has it.
        folder: with a configuration, its files, and a voice.
    """
    configuration = _write_local(_find_only(folder, "*.yaml"))
    voice = sorted(folder.glob("embeddings/*.safetensors"))
    if not voice:
        raise ConfigError(f"{folder}: no embeddings/*.safetensors")
    serve = ("-mpocket_tts", "serve", "--host", "127.0.0.1", "--port", "{port}")
    return Contender(
        "pocket-tts",
        (python, *serve, "--config", str(configuration), "--default-voice", str(voice[0])),
        "/tts",
        {"text": "{text}"},
        24_000,
        header_bytes=WAV_HEADER,
        is_form=True,
        ready_route="/health",
    )


def piper(python: str, voice: Path) -> Contender:
    """The HTTP server of the package piper-tts.

    Args:
        python: of the environment that has it.
        voice: an `.onnx` file with its `.onnx.json`, at 22 050 Hz.
    """
    serve = ("-m", "piper.http_server", "--host", "127.0.0.1", "--port", "{port}")
    return Contender(
        "piper",
        (python, *serve, "-m", str(voice)),
        "/synthesize",
        {"text": "{text}"},
        22_050,
        header_bytes=WAV_HEADER,
        ready_route="/info",
    )


def _find_only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise ConfigError(f"{folder}: needs one {pattern}, has {len(found)}")
    return found[0]


def _write_local(configuration: Path) -> Path:
    """A copy with the files beside it in place of a hub's."""
    values = yaml.safe_load(configuration.read_text(encoding="utf-8"))

    def read_local(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: read_local(one) for key, one in value.items()}
        if not isinstance(value, str) or not value.startswith("hf://"):
            return value
        name = value.partition("@")[0].rpartition("/")[2]
        found = sorted(configuration.parent.rglob(name))
        return str(found[0].absolute()) if found else value

    copy = configuration.parent / "local" / configuration.name
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(yaml.safe_dump(read_local(values)), encoding="utf-8")
    return copy


def _rename_as_npz(styles: Path) -> Path:
    """The same file by the ending that it is known by there."""
    link = styles.with_suffix(".npz")
    if not link.exists():
        os.link(styles, link)
    return link


MATCHES: Mapping[str, Callable[[str, Path], tuple[Contender, Contender]]] = {
    "fastkokoro": lambda python, folder: (
        cantata(f"kokoro={folder}", "af_heart"),
        fastkokoro(python, folder),
    ),
    "pocket-tts": lambda python, folder: (cantata(str(folder)), pocket_tts(python, folder)),
    "piper": lambda python, voice: (
        cantata(find_model(_HEARD_BESIDE_PIPER), _HEARD_BESIDE_PIPER),
        piper(python, voice),
    ),
}
"""This server and another, by the other's name. Piper alone has other weights."""
