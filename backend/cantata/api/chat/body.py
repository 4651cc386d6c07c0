"""The body of POST /v1/chat/completions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from cantata.api.chat.messages import MAX_MESSAGES, ONE_OR_LIST, MessageBody
from cantata.api.chat.tools import MAX_TOOLS, Tool
from cantata.api.compat_fields import accepts_only
from cantata.api.images.body import PictureOptions
from cantata.api.schemas import Name, Seed, Temperature, Text, VoiceName, WireModel

MAX_STOPS = 4
StopText = Annotated[Text, Field(min_length=1, max_length=256)]
StopTexts = Annotated[
    Annotated[StopText, Tag("one")]
    | Annotated[list[StopText], Field(max_length=MAX_STOPS), Tag("list")],
    ONE_OR_LIST,
]
UsePenalty = Annotated[float, Field(ge=-2.0, le=2.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, lt=2**31)]
AnswerFormat = Literal["wav", "aac", "mp3", "flac", "opus", "pcm16"]


class AudioOptions(WireModel):
    """How an answer is spoken."""

    format: AnswerFormat | None = None
    """Absent: `wav`, or `pcm16` in a stream, which takes no other."""
    voice: VoiceName | None = None
    """Absent: the model's default voice."""


class MediaOptions(WireModel):
    """How files are read, under vLLM's name."""

    use_audio_in_video: bool = False
    """The model also hears the sound of videos."""


class TemplateOptions(WireModel):
    """Options of the chat template, under vLLM's name."""

    enable_thinking: bool = False
    """The model thinks in words before it answers."""


class StreamOptions(WireModel):
    """What a stream sends in addition to the answer."""

    include_usage: bool = False


class Neutral(WireModel):
    """OpenAI's options that no model here has. Clients send them with values that change nothing,
    and those are accepted."""

    n: Annotated[int, accepts_only(1)] | None = None
    logit_bias: Annotated[dict[str, Any], accepts_only({})] | None = None
    logprobs: Annotated[bool, accepts_only(False)] | None = None
    top_logprobs: Annotated[int, accepts_only(0)] | None = None
    response_format: Annotated[dict[str, Any], accepts_only({"type": "text"})] | None = None
    parallel_tool_calls: Annotated[bool, accepts_only(True)] | None = None
    functions: Annotated[list[Any], accepts_only([])] | None = None
    function_call: Annotated[Any, accepts_only("none", "auto")] = "none"


class ChatBody(Neutral):
    """POST /v1/chat/completions."""

    tools: Annotated[list[Tool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: Annotated[Any, accepts_only("none", "auto")] = "auto"
    """`none`: the model does not see the tools. It cannot be forced to call one."""
    messages: Annotated[list[MessageBody], Field(min_length=1, max_length=MAX_MESSAGES)]
    model: Name | None = None
    """Absent: the server's first model that answers messages."""
    modalities: Annotated[list[Literal["text", "audio", "image"]], Field(min_length=1)] | None = (
        None
    )
    """With `audio`, the answer is spoken, and its text is the transcript. With `image`, it is a
    picture. Absent: text, or a picture if the model makes nothing else."""
    audio: AudioOptions = AudioOptions()
    image_config: PictureOptions = PictureOptions()
    """How a picture is drawn."""
    mm_processor_kwargs: MediaOptions = MediaOptions()
    """Not part of OpenAI's protocol."""
    chat_template_kwargs: TemplateOptions = TemplateOptions()
    """Not part of OpenAI's protocol."""
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    stop: StopTexts | None = None
    """Texts that end the answer; it does not contain them."""
    max_completion_tokens: Count | None = None
    """Most tokens of text."""
    max_tokens: Count | None = None
    """The older name of `max_completion_tokens`."""
    seed: Seed | None = None
    temperature: Temperature | None = None
    top_p: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)] | None = None
    top_k: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    """0 and -1 mean all. Not part of OpenAI's protocol."""
    repetition_penalty: Annotated[float, Field(gt=0.0, le=10.0, allow_inf_nan=False)] | None = None
    """Penalty on tokens of the text so far; 1 changes nothing. Not part of OpenAI's protocol."""
    presence_penalty: UsePenalty | None = None
    """Subtracted once from the score of each token that is in the answer's text so far."""
    frequency_penalty: UsePenalty | None = None
    """Subtracted from a token's score as often as the answer's text so far has that token."""

    @property
    def stops(self) -> tuple[str, ...]:
        """`stop` in either way of writing it."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools that the model is told of."""
        return () if self.tool_choice == "none" else tuple(self.tools or ())

    @property
    def spoken(self) -> bool:
        """Whether the answer is to be spoken."""
        return "audio" in (self.modalities or ())
