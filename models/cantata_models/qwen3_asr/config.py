"""A checkpoint's configuration, as the publisher saves it or as transformers does.

The publisher's has all of the model in `thinker_config`, and so begin the tensors' names;
transformers' has no such section, and other names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.omni.preprocessor_config import (
    RATE,
    read_longest_s,
    read_preprocessor_fields,
)
from cantata_layers.qwen3_config import Qwen3Stack, read_qwen3_stack

LANGUAGES: Mapping[str, str] = {
    "Chinese": "zh",
    "English": "en",
    "Cantonese": "yue",
    "Arabic": "ar",
    "German": "de",
    "French": "fr",
    "Spanish": "es",
    "Portuguese": "pt",
    "Indonesian": "id",
    "Italian": "it",
    "Korean": "ko",
    "Russian": "ru",
    "Thai": "th",
    "Vietnamese": "vi",
    "Japanese": "ja",
    "Turkish": "tr",
    "Hindi": "hi",
    "Malay": "ms",
    "Dutch": "nl",
    "Swedish": "sv",
    "Danish": "da",
    "Finnish": "fi",
    "Polish": "pl",
    "Czech": "cs",
    "Filipino": "fil",
    "Persian": "fa",
    "Greek": "el",
    "Romanian": "ro",
    "Hungarian": "hu",
    "Macedonian": "mk",
}
"""Name -> BCP 47 tag, in the publisher's order: the most usual first."""


NAMES: Mapping[str, str] = {tag: name for name, tag in LANGUAGES.items()}
"""The other way round."""
_ALIASES = {"cmn": "zh", "tl": "fil"}
"""Subtags that mean the same language -> the tag above."""


def find_name(tag: str) -> str | None:
    """The name of a BCP 47 tag's language, whatever its region and script; None: it is unknown."""
    primary = tag.replace("_", "-").split("-")[0].lower()
    return NAMES.get(_ALIASES.get(primary, primary))


MODEL_TYPE = "qwen3_asr"
ALIGNER_FOLDER = "forced_aligner"
"""Inside a checkpoint's folder: a second checkpoint, which gives words their times."""
_SECTION = "thinker_config"
_ALIGNER = "forced_aligner"
"""In the type of a published checkpoint that gives words their times."""


@dataclass(frozen=True, slots=True)
class TensorNames:
    """How a checkpoint's tensors begin."""

    network: str
    """Of the language model, as the next."""
    head: str
    """Absent from a file where it is the table of embeddings."""
    encoder: str
    projector: Mapping[str, str]
    """Of the two layers behind the encoder: how they begin -> how transformers' network calls
    them."""


PUBLISHED = TensorNames(
    network="thinker.model.",
    head="thinker.lm_head.",
    encoder="thinker.audio_tower.",
    projector={
        "thinker.audio_tower.proj1.": "linear_1.",
        "thinker.audio_tower.proj2.": "linear_2.",
    },
)
SAVED_AGAIN = TensorNames(
    network="model.language_model.",
    head="lm_head.",
    encoder="model.audio_tower.",
    projector={
        "model.multi_modal_projector.linear_1.": "linear_1.",
        "model.multi_modal_projector.linear_2.": "linear_2.",
    },
)
"""By transformers."""


@dataclass(frozen=True, slots=True)
class Qwen3AsrConfig:
    """What the stages need to know."""

    stack: Qwen3Stack
    """Of the language model."""
    is_tied: bool
    """Whether the language model's head may be its table of embeddings."""
    encoder: Mapping[str, int]
    """The encoder's sizes under transformers' names."""
    mel_bins: int
    longest_s: float
    """Of a recording that is recognized at once."""
    audio_pad: int
    """The token that stands for a row of the encoder."""
    languages: Sequence[str]
    """Names, of `LANGUAGES`."""
    names: TensorNames


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Tokens of a prompt and of an answer."""

    im_start: int
    im_end: int
    """Ends an answer, as the next."""
    end_of_text: int
    audio_start: int
    audio_end: int
    audio_pad: int
    asr_text: int
    """Stands between the language and the text."""


_TOKENS = {
    "im_start": "<|im_start|>",
    "im_end": "<|im_end|>",
    "end_of_text": "<|endoftext|>",
    "audio_start": "<|audio_start|>",
    "audio_end": "<|audio_end|>",
    "audio_pad": "<|audio_pad|>",
    "asr_text": "<asr_text>",
}
_ENCODER_SIZES = (
    "d_model",
    "downsample_hidden_size",
    "encoder_attention_heads",
    "encoder_ffn_dim",
    "encoder_layers",
    "n_window",
    "n_window_infer",
    "num_mel_bins",
    "output_dim",
)


def load_config(checkpoint: Path, *, aligns: bool = False) -> Qwen3AsrConfig:
    """Read config.json and the preprocessor's settings.

    Args:
        aligns: whether it is to give words their times; otherwise, to write.

    Raises:
        ConfigError: a file or value is missing or wrong, or is not served.
    """
    fields = read_json(checkpoint / "config.json")
    published = bool(fields.items(_SECTION))
    part = fields.section(_SECTION) if published else fields
    if _is_aligner(fields, part) != aligns:
        does, is_to = ("writes text", "align") if aligns else ("aligns words", "write text")
        raise ConfigError(f"{part.where}: this checkpoint {does}; it is to {is_to}")
    stack = read_qwen3_stack(part.section("text_config"))
    encoder = _read_encoder(part.section("audio_config"), stack)
    sound = read_preprocessor_fields(checkpoint)
    _check_sound(sound, encoder)
    return Qwen3AsrConfig(
        stack=stack,
        is_tied=_is_tied(fields, part),
        encoder=encoder,
        mel_bins=encoder["num_mel_bins"],
        longest_s=read_longest_s(sound),
        audio_pad=part.get("audio_token_id", int),
        languages=_read_languages(fields),
        names=PUBLISHED if published else SAVED_AGAIN,
    )


def _is_aligner(fields: JsonFields, part: JsonFields) -> bool:
    named = (part.get("model_type", str, ""), str(fields.values.get("architectures", "")))
    return _ALIGNER in named[0] or "TokenClassification" in named[1]


def find_special_tokens(tokenizer: Tokenizer, config: Qwen3AsrConfig) -> SpecialTokens:
    """Look up the tokens that prompts are made of. Raises ConfigError: one is missing, or the
    config names another."""
    tokens = SpecialTokens(
        **{name: find_token(tokenizer, token) for name, token in _TOKENS.items()}
    )
    if tokens.audio_pad != config.audio_pad:
        raise ConfigError(
            f"audio_token_id is {config.audio_pad}, but the tokenizer's {_TOKENS['audio_pad']} is "
            f"{tokens.audio_pad}"
        )
    return tokens


def find_token(tokenizer: Tokenizer, token: str) -> int:
    """Return a special token's number. Raises ConfigError: there is none."""
    found = tokenizer.token_to_id(token)
    if found is None:
        raise ConfigError(f"the tokenizer has no {token}")
    return int(found)


def _read_encoder(fields: JsonFields, stack: Qwen3Stack) -> Mapping[str, int]:
    sizes = {key: fields.size(key) for key in _ENCODER_SIZES}
    if sizes["n_window"] != 50 or sizes["n_window_infer"] % 100:
        # WHY: the number of rows of a whole window, 13, follows from 100 mel frames.
        raise ConfigError(
            f"{fields.where}: n_window {sizes['n_window']} and n_window_infer "
            f"{sizes['n_window_infer']} are not served; valid: 50, and a multiple of 100"
        )
    fields.expect("scale_embedding", False, default=False)
    if sizes["output_dim"] != stack.hidden_size:
        raise ConfigError(
            f"{fields.where}: output_dim {sizes['output_dim']} is not the language model's "
            f"hidden_size {stack.hidden_size}"
        )
    fields.expect("activation_function", "gelu", default="gelu")
    return sizes


def _check_sound(fields: JsonFields, encoder: Mapping[str, int]) -> None:
    served = {
        "sampling_rate": RATE,
        "n_fft": 400,
        "hop_length": 160,
        "feature_size": encoder["num_mel_bins"],
    }
    for key, value in served.items():
        # The published file says nothing of the rate.
        fields.expect(key, value, default=value if key == "sampling_rate" else None)


def _is_tied(fields: JsonFields, part: JsonFields) -> bool:
    """WHY true where nothing is said: so are both published models."""
    key = "tie_word_embeddings"
    whole = fields.get(key, bool, part.get(key, bool, True))
    return part.section("text_config").get(key, bool, whole)


def _read_languages(fields: JsonFields) -> Sequence[str]:
    """The languages that the checkpoint names, or all."""
    if fields.values.get("support_languages") is None:
        return tuple(LANGUAGES)
    named = fields.strings("support_languages")
    known = tuple(name for name in named if name in LANGUAGES)
    if not known:
        raise ConfigError(f"{fields.where}: support_languages has no known language: {named}")
    return known
