"""The utterances that both the reference package and this implementation synthesize."""

from __future__ import annotations

from dataclasses import dataclass

from cantata_models.qwen3_tts.random_checkpoint import TINY_LARGE, TINY_SMALL, Qwen3TtsShape

SHAPES: dict[str, Qwen3TtsShape] = {"small": TINY_SMALL, "large": TINY_LARGE}


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """Identifies a random checkpoint: arguments of `write_checkpoint`."""

    shape: str
    """Key of `SHAPES`."""
    kind: str
    seed: int

    @property
    def name(self) -> str:
        """The name in checksums.json."""
        return f"{self.shape}-{self.kind}-{self.seed}"


@dataclass(frozen=True, slots=True)
class Qwen3TtsScenario:
    """One utterance, greedy at both levels."""

    name: str
    checkpoint: CheckpointKey
    text: str
    max_new_tokens: int
    """The utterance has one frame fewer, unless an end code comes first."""
    language: str = "Auto"
    speaker: str | None = None
    instruct: str | None = None
    recording_seconds: float | None = None
    """Length of the recording of the speaker to follow (`recordings.recording`)."""
    reference_text: str | None = None
    """The recording's transcript, for in-context cloning. None: only the speaker vector is used."""
    streaming_text: bool = False
    """Feed the text one token per step; otherwise all of it is in the prompt."""
    repetition_penalty: float = 1.0


def _key(shape: str, kind: str, seed: int) -> CheckpointKey:
    return CheckpointKey(shape, kind, seed)


SCENARIOS: tuple[Qwen3TtsScenario, ...] = (
    Qwen3TtsScenario(
        "voice", _key("small", "custom_voice", 1), "Good morning.", 24, speaker="Vivian"
    ),
    Qwen3TtsScenario(
        "voice_language",
        _key("small", "custom_voice", 2),
        "The rain is over, and the street smells of wet stone.",
        24,
        language="English",
        speaker="Ryan",
        repetition_penalty=1.05,
    ),
    Qwen3TtsScenario(
        "voice_streaming_text",
        _key("small", "custom_voice", 3),
        "This text is long, so that some of it still trails while the first frames are spoken.",
        40,
        language="German",
        speaker="Ryan",
        streaming_text=True,
        repetition_penalty=1.05,
    ),
    Qwen3TtsScenario(
        "voice_short_streaming_text",
        _key("large", "custom_voice", 1),
        "Hi.",
        24,
        speaker="Vivian",
        streaming_text=True,
        repetition_penalty=1.3,
    ),
    Qwen3TtsScenario(
        # The end code already has the best score at the first step.
        "end_code_too_early",
        _key("small", "custom_voice", 4),
        "Summer.",
        24,
        speaker="Ryan",
        repetition_penalty=1.05,
    ),
    Qwen3TtsScenario(
        # It has the best score at the first three steps, so the utterance ends as soon as allowed.
        "end_code_at_once",
        _key("large", "custom_voice", 4),
        "Tuesday.",
        24,
        speaker="Ryan",
        repetition_penalty=1.05,
    ),
    Qwen3TtsScenario(
        "dialect_auto",
        _key("small", "custom_voice", 1),
        "今天天气真好。",
        24,
        speaker="Dylan",
        repetition_penalty=1.05,
    ),
    Qwen3TtsScenario(
        "dialect_chinese",
        _key("large", "custom_voice", 2),
        "世界你好。",
        24,
        language="Chinese",
        speaker="Dylan",
        repetition_penalty=1.05,
    ),
    Qwen3TtsScenario(
        "dialect_voice_in_english",
        _key("large", "custom_voice", 2),
        "Hello, world.",
        24,
        language="English",
        speaker="Dylan",
    ),
    Qwen3TtsScenario(
        "instruct",
        _key("large", "custom_voice", 3),
        "What a day!",
        24,
        language="English",
        speaker="Vivian",
        instruct="Speak slowly, as if tired.",
    ),
    Qwen3TtsScenario(
        "instruct_ignored",
        _key("small", "custom_voice", 2),
        "What a day!",
        24,
        speaker="Vivian",
        instruct="Speak slowly, as if tired.",
        repetition_penalty=1.05,
    ),
    Qwen3TtsScenario(
        "design",
        _key("large", "voice_design", 1),
        "Welcome to the museum.",
        24,
        language="English",
        instruct="A warm, low voice of an old man.",
    ),
    Qwen3TtsScenario(
        "design_streaming_text",
        _key("small", "voice_design", 3),
        "Welcome to the museum.",
        24,
        instruct="A bright voice.",
        streaming_text=True,
        repetition_penalty=1.05,
    ),
    Qwen3TtsScenario("design_without_instruct", _key("large", "voice_design", 2), "Yes.", 24),
    Qwen3TtsScenario(
        "speaker_vector",
        _key("small", "base", 1),
        "This follows a voice.",
        24,
        language="English",
        recording_seconds=1.3,
        streaming_text=True,
    ),
    Qwen3TtsScenario(
        "speaker_vector_whole_text",
        _key("large", "base", 1),
        "This follows a voice.",
        24,
        recording_seconds=2.0,
        repetition_penalty=1.05,
    ),
    Qwen3TtsScenario(
        "in_context_text_trails",
        _key("small", "base", 2),
        "The text is longer than the recording, so it trails.",
        24,
        recording_seconds=1.0,
        reference_text="One second.",
        streaming_text=True,
    ),
    Qwen3TtsScenario(
        "in_context_frames_longer",
        _key("large", "base", 2),
        "Short.",
        24,
        language="German",
        recording_seconds=3.1,
        reference_text="Three.",
        streaming_text=True,
        repetition_penalty=1.05,
    ),
    Qwen3TtsScenario(
        "in_context_whole_text",
        _key("large", "base", 3),
        "All of the text first.",
        24,
        language="English",
        recording_seconds=1.7,
        reference_text="What was said before.",
    ),
)
