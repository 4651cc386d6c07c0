"""A session's settings: checked, and updated in part, under OpenAI's names."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from cantata.api.chat.tools import MAX_TOOLS, FunctionName
from cantata.api.schemas import Text, VoiceName
from cantata.contract.data.errors import InvalidRequest
from cantata.speech_input.semantic_end import Eagerness


class SettingsPart(BaseModel):
    """Base of the settings. Values are not coerced. Unknown keys are ignored: clients send options
    of other models."""

    model_config = ConfigDict(strict=True, frozen=True)


class PcmFormat(SettingsPart):
    """Signed 16 bit, little endian, mono."""

    type: Literal["audio/pcm"] = "audio/pcm"
    rate: Literal[24000] = 24000


class TelephoneFormat(SettingsPart):
    """ITU-T G.711, 8 kHz."""

    type: Literal["audio/pcmu", "audio/pcma"]


SoundFormat = Annotated[PcmFormat | TelephoneFormat, Field(discriminator="type")]


InterruptOn = Literal["speech", "words"]
"""What of the user's stops an answer: any speech, at once, as at OpenAI; or what means to."""


class ServerVad(SettingsPart):
    """A turn ends after a silence."""

    type: Literal["server_vad"] = "server_vad"
    threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    """Least probability of speech."""
    prefix_padding_ms: Annotated[int, Field(ge=0, le=5000)] = 300
    """Sound before the first speech that belongs to the turn, in ms."""
    silence_duration_ms: Annotated[int, Field(ge=32, le=10_000)] = 500
    create_response: bool = True
    interrupt_response: bool = True
    interrupt_on: InterruptOn = "speech"
    idle_timeout_ms: Annotated[int, Field(ge=1000, le=600_000)] | None = None
    """Silence after an answer has been played, in ms, after which another answer starts."""

    @property
    def holds(self) -> bool:
        """Whether speech over an answer waits until it is known to be meant."""
        return self.interrupt_response and self.interrupt_on == "words"


class SemanticVad(SettingsPart):
    """A turn ends soon if the speaker seems to have finished, otherwise late."""

    type: Literal["semantic_vad"]
    threshold: ClassVar[float] = 0.5
    prefix_padding_ms: ClassVar[int] = 300
    eagerness: Eagerness = "auto"
    create_response: bool = True
    interrupt_response: bool = True
    interrupt_on: InterruptOn = "words"

    @property
    def holds(self) -> bool:
        """As of `ServerVad`."""
        return self.interrupt_response and self.interrupt_on == "words"


TurnDetection = Annotated[ServerVad | SemanticVad, Field(discriminator="type")]


class Transcription(SettingsPart):
    """Asks for the events of input transcription."""

    model: Text | None = None
    """A served model that transcribes; None, and OpenAI's names: the first."""
    language: Annotated[Text, Field(max_length=32)] | None = None
    """BCP 47 tag."""
    languages: Annotated[list[Annotated[Text, Field(max_length=32)]], Field(max_length=256)] = []
    """Those that may be spoken."""
    prompt: Annotated[Text, Field(max_length=4096)] | None = None
    """Text that biases names and spelling."""
    keywords: Annotated[list[Annotated[Text, Field(max_length=128)]], Field(max_length=256)] = []
    """Names that may occur; they are put before the prompt."""


def _refuse_noise_reduction(value: object) -> None:
    if value is not None:
        raise PydanticCustomError(
            "noise_reduction", "this server does not reduce noise; valid: null"
        )


class AudioInput(SettingsPart):
    """Settings of the sound that the client sends."""

    format: SoundFormat = PcmFormat()
    transcription: Transcription | None = None
    noise_reduction: Annotated[None, BeforeValidator(_refuse_noise_reduction)] = None
    """Refused rather than ignored silently."""
    turn_detection: TurnDetection | None = ServerVad()


class AudioOutputSettings(SettingsPart):
    """Settings of the sound that the client gets."""

    format: SoundFormat = PcmFormat()
    voice: VoiceName | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5, allow_inf_nan=False)] = 1.0


class Audio(SettingsPart):
    """Settings of sound in both directions."""

    input: AudioInput = AudioInput()
    output: AudioOutputSettings = AudioOutputSettings()


MaxTokens = Annotated[int, Field(ge=1, le=4096)] | Literal["inf"]
Modalities = Annotated[list[Literal["audio", "text"]], Field(min_length=1, max_length=1)]


def _refuse_other_tools(value: object) -> object:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind is not None and kind != "function":
        raise PydanticCustomError(
            "tool_type", "{kind} tools are not served; valid: function", {"kind": str(kind)}
        )
    return value


class FunctionTool(SettingsPart):
    """A function that the client runs."""

    type: Literal["function"] = "function"
    name: FunctionName
    description: Text | None = None
    parameters: dict[str, Any] | None = None
    """JSON Schema."""


class ForcedFunction(SettingsPart):
    """A choice: the answer calls this function."""

    type: Literal["function"]
    name: FunctionName


def _accept_tracing(value: object) -> None:
    """Clients send it with every session. It is about OpenAI's dashboard: there is none here."""
    if not (value is None or value == "auto" or isinstance(value, dict)):
        raise PydanticCustomError("tracing", 'must be "auto", an object or null')


def _refuse_prompt(value: object) -> None:
    if value is not None:
        raise PydanticCustomError(
            "prompt", "this server keeps no prompts: send instructions; valid: null"
        )


def _refuse_reasoning(value: object) -> None:
    effort = value.get("effort") if isinstance(value, dict) else value
    if effort not in (None, "none"):
        raise PydanticCustomError(
            "reasoning", 'spoken answers are not thought about first; valid: {"effort": "none"}'
        )


def _refuse_other_truncation(value: object) -> object:
    if value not in ("auto", "disabled"):
        raise PydanticCustomError("truncation", 'not served; valid: "auto", "disabled"')
    return value


AnyTool = Annotated[FunctionTool, BeforeValidator(_refuse_other_tools)]
ToolChoice = Literal["auto", "none", "required"] | ForcedFunction


class SessionSettings(SettingsPart):
    """Settings of a session, or of one response: the session's, with what its `response.create`
    changes."""

    type: Literal["realtime", "transcription"] = "realtime"
    """A session that only transcribes has no use for what concerns answers."""
    include: list[Literal["item.input_audio_transcription.logprobs"]] = []
    output_modalities: Modalities = ["audio"]
    instructions: Annotated[Text, Field(max_length=65_536)] = ""
    max_output_tokens: MaxTokens = "inf"
    tools: Annotated[list[AnyTool], Field(max_length=MAX_TOOLS)] = []
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True
    """False: at most one call in an answer."""
    truncation: Annotated[
        Literal["auto", "disabled"], BeforeValidator(_refuse_other_truncation)
    ] = "auto"
    """What becomes of a conversation that is too long for the model: it gets the end of it, or the
    response fails."""
    tracing: Annotated[None, BeforeValidator(_accept_tracing)] = None
    prompt: Annotated[None, BeforeValidator(_refuse_prompt)] = None
    reasoning: Annotated[None, BeforeValidator(_refuse_reasoning)] = None
    audio: Audio = Audio()

    @property
    def offered(self) -> list[FunctionTool]:
        return [] if self.tool_choice == "none" else self.tools

    @property
    def speaks(self) -> bool:
        """Whether answers are sound."""
        return self.output_modalities == ["audio"]


def make_settings(*, speaks: bool, answers: bool) -> SessionSettings:
    """Make the settings of a new session.

    Args:
        speaks: its responder can answer aloud.
        answers: it is a conversation.
    """
    if answers:
        return SessionSettings(output_modalities=["audio" if speaks else "text"])
    return apply_update(SessionSettings(output_modalities=["text"]), {"type": "transcription"})


_NULLABLE = (
    "turn_detection",
    "transcription",
    "language",
    "prompt",
    "noise_reduction",
    "idle_timeout_ms",
    "voice",
)
"""Fields in which null is a value; elsewhere it means the same as no field."""
_BETA_FORMATS = {"pcm16": "audio/pcm", "g711_ulaw": "audio/pcmu", "g711_alaw": "audio/pcma"}
_BETA_INPUT = {
    "input_audio_transcription": "transcription",
    "input_audio_noise_reduction": "noise_reduction",
    "turn_detection": "turn_detection",
}
_BETA_OUTPUT = {"voice": "voice", "speed": "speed"}


def apply_update(
    settings: SessionSettings, sent: dict[str, Any], param: str = "session"
) -> SessionSettings:
    """Build the settings after an update; what was not sent stays.

    Args:
        settings: before.
        sent: as the client wrote it, in the names of today's protocol or of its beta.
        param: the message's field, for errors.

    Raises:
        InvalidRequest: a value is not valid.
    """
    merged = _merge_settings(settings.model_dump(), _convert_beta_fields(sent))
    if merged.get("type") == "transcription":
        _make_transcription_only(merged, sent, param)
    elif settings.type == "transcription":
        raise InvalidRequest(
            f"{param}.type: a transcription session stays one; valid: transcription. Connect "
            "again with ?model= for a conversation",
            f"{param}.type",
        )
    try:
        new = SessionSettings.model_validate(merged)
    except ValidationError as error:
        problems = [
            (_find_place(one["loc"]), one["msg"]) for one in error.errors(include_url=False)
        ]
        place = problems[0][0]
        where = ".".join((param, *place))
        # Of a value that may be one of several things, each says what it is not.
        stated = "; or ".join(message for other, message in problems if other == place)
        raise InvalidRequest(f"{where}: {stated}", where) from None
    return new


def _make_transcription_only(merged: dict[str, Any], sent: dict[str, Any], param: str) -> None:
    """Make the settings those of a transcription session. Raises InvalidRequest: they ask for what
    only conversations have."""
    audio = merged["audio"]
    received = audio.get("input") if isinstance(audio, dict) else None
    if not isinstance(received, dict):
        return  # not valid, as the check of all settings says
    where = f"{param}.audio.input"
    if received.get("transcription") is None:
        asked = _convert_beta_fields(sent).get("audio")
        asked = asked.get("input") if isinstance(asked, dict) else None
        if isinstance(asked, dict) and "transcription" in asked:
            raise InvalidRequest(
                f"{where}.transcription: a transcription session transcribes; valid: an object",
                f"{where}.transcription",
            )
        audio["input"] = received = {**received, "transcription": {}}
    vad = received.get("turn_detection")
    if isinstance(vad, dict) and vad.get("idle_timeout_ms") is not None:
        raise InvalidRequest(
            f"{where}.turn_detection.idle_timeout_ms: a transcription session gives no answers; "
            "valid: null",
            f"{where}.turn_detection.idle_timeout_ms",
        )


def _find_place(location: tuple[int | str, ...]) -> tuple[str, ...]:
    """The path of fields. Pydantic inserts the names of a union's members, which the client did not
    write."""
    return tuple(str(part) for part in location if part in _FIELDS)


_FIELDS = frozenset(name for kind in SettingsPart.__subclasses__() for name in kind.model_fields)


def _merge_settings(old: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    result = dict(old)
    for key, value in sent.items():
        before = old.get(key)
        if value is None and key not in _NULLABLE:
            continue
        if isinstance(value, dict) and isinstance(before, dict) and _has_same_type(before, value):
            value = _merge_settings(before, value)
        result[key] = value
    return result


def _has_same_type(old: dict[str, Any], sent: dict[str, Any]) -> bool:
    """Whether both have the same `type`; another type begins with its own defaults."""
    return sent.get("type", old.get("type")) == old.get("type")


def _convert_beta_fields(sent: dict[str, Any]) -> dict[str, Any]:
    """Move the beta's flat fields to today's places."""
    new = dict(sent)
    sides: dict[str, dict[str, Any]] = {"input": {}, "output": {}}
    for side, names in (("input", _BETA_INPUT), ("output", _BETA_OUTPUT)):
        for flat, name in names.items():
            if flat in new:
                sides[side][name] = new.pop(flat)
        flat = f"{side}_audio_format"
        if (sound_format := new.pop(flat, None)) is not None:
            sides[side]["format"] = {"type": _BETA_FORMATS.get(str(sound_format), sound_format)}
    if (modalities := new.pop("modalities", None)) is not None:
        spoken = isinstance(modalities, list) and "audio" in modalities
        new["output_modalities"] = ["audio"] if spoken else modalities
    if (max_tokens := new.pop("max_response_output_tokens", None)) is not None:
        new["max_output_tokens"] = max_tokens
    if any(sides.values()):
        audio = new.get("audio")
        new["audio"] = _merge_settings(audio if isinstance(audio, dict) else {}, sides)
    return new
