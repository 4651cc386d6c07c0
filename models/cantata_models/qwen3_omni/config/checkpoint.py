"""A checkpoint's whole configuration: Instruct with speech, Thinking and Captioner without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.omni.thinker_fields import ThinkerSampling, read_thinker_sampling
from cantata_models.qwen3_omni.config.code2wav import Code2WavConfig, read_code2wav
from cantata_models.qwen3_omni.config.talker import (
    Qwen3OmniTalkerConfig,
    TalkerSampling,
    read_talker,
    read_talker_sampling,
)
from cantata_models.qwen3_omni.config.thinker import Qwen3OmniThinkerConfig, read_thinker

MODEL_TYPE = "qwen3_omni_moe"
THINKER, TALKER, CODE2WAV = "thinker.", "talker.", "code2wav."
"""In front of the names of each part's tensors."""
EMBEDDINGS = f"{THINKER}model.embed_tokens.weight"


@dataclass(frozen=True, slots=True)
class Qwen3OmniTextIds:
    """Special tokens of the dialogue and of speech."""

    im_start: int
    im_end: int
    system: int
    """The role, as the next two."""
    user: int
    assistant: int
    tts_pad: int
    tts_bos: int
    tts_eos: int

    @property
    def roles(self) -> Mapping[str, int]:
        """By name."""
        return {"system": self.system, "user": self.user, "assistant": self.assistant}


@dataclass(frozen=True, slots=True)
class SpeechConfig:
    """The parts that speak."""

    talker: Qwen3OmniTalkerConfig
    sampling: TalkerSampling
    code2wav: Code2WavConfig


@dataclass(frozen=True, slots=True)
class OmniConfig:
    thinker: Qwen3OmniThinkerConfig
    text: Qwen3OmniTextIds
    sampling: ThinkerSampling
    speech: SpeechConfig | None
    """None: the checkpoint only writes."""


def load_config(folder: Path) -> OmniConfig:
    """Read a checkpoint's config.json and generation_config.json.

    Raises:
        ConfigError: a file or a value is missing, or a value is wrong or not served.
    """
    root = read_json(folder / "config.json")
    model_type = root.get("model_type", str)
    if model_type != MODEL_TYPE:
        raise ConfigError(f"{root.where}: model_type must be {MODEL_TYPE!r}, not {model_type!r}")
    path = folder / "generation_config.json"
    generation = read_json(path) if path.exists() else JsonFields({}, str(path))
    thinker = read_thinker(root.section("thinker_config"))
    return OmniConfig(
        thinker=thinker,
        text=Qwen3OmniTextIds(
            im_start=root.get("im_start_token_id", int),
            im_end=root.get("im_end_token_id", int),
            system=root.get("system_token_id", int),
            user=root.get("user_token_id", int),
            assistant=root.get("assistant_token_id", int),
            tts_pad=root.get("tts_pad_token_id", int),
            tts_bos=root.get("tts_bos_token_id", int),
            tts_eos=root.get("tts_eos_token_id", int),
        ),
        sampling=read_thinker_sampling(generation),
        speech=_speech(root, generation, thinker),
    )


def load_speech_config(folder: Path) -> tuple[OmniConfig, SpeechConfig]:
    """The same for a stage that only a speaking checkpoint has.

    Raises:
        ConfigError: as `load_config`, or the checkpoint has no talker.
    """
    config = load_config(folder)
    if config.speech is None:
        raise ConfigError(f"{folder}: enable_audio_output is false, so there is no talker")
    return config, config.speech


def _speech(
    root: JsonFields, generation: JsonFields, thinker: Qwen3OmniThinkerConfig
) -> SpeechConfig | None:
    if not root.get("enable_audio_output", bool, True):
        return None
    speech = SpeechConfig(
        talker=read_talker(root.section("talker_config")),
        sampling=read_talker_sampling(generation),
        code2wav=read_code2wav(root.section("code2wav_config")),
    )
    _check_consistent(speech, thinker, root.where)
    return speech


def _check_consistent(speech: SpeechConfig, thinker: Qwen3OmniThinkerConfig, where: str) -> None:
    talker, decoder = speech.talker, speech.code2wav
    if talker.thinker_hidden_size != thinker.backbone.layers.hidden_size:
        raise ConfigError(
            f"{where}: talker_config.thinker_hidden_size {talker.thinker_hidden_size} is not the "
            f"thinker's hidden_size {thinker.backbone.layers.hidden_size}"
        )
    layers = thinker.backbone.layers.layers
    if not 0 <= talker.accept_layer <= layers:
        raise ConfigError(
            f"{where}: accept_hidden_layer must be 0 to {layers}, not {talker.accept_layer}"
        )
    theirs = (decoder.codebooks, decoder.codebook_size)
    if (talker.num_codebooks, talker.predictor.vocab_size) != theirs:
        raise ConfigError(
            f"{where}: the talker makes frames of {talker.num_codebooks} codes below "
            f"{talker.predictor.vocab_size}, code2wav takes {theirs[0]} below {theirs[1]}"
        )
