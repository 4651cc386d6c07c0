"""The body of POST /v1/chat/completions."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from cantata.api.chat.messages import MAX_MESSAGES, ONE_OR_LIST, MessageBody
from cantata.api.chat.response_format import ResponseFormat
from cantata.api.chat.tools import MAX_TOOLS, NamedTool, Tool
from cantata.api.compat_fields import accepts_only
from cantata.api.images.body import PictureOptions
from cantata.api.schemas import Name, Seed, Temperature, Text, VoiceName, WireModel
from cantata.contract.data.chat import ToolChoice

MAX_STOPS = 4
StopText = Annotated[Text, Field(min_length=1, max_length=256)]
StopTexts = Annotated[
    Annotated[StopText, Tag("one")]
    | Annotated[list[StopText], Field(max_length=MAX_STOPS), Tag("list")],
    ONE_OR_LIST,
]
ToolChoiceBody = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("word")] | Annotated[NamedTool, Tag("tool")],
    Discriminator(
        lambda sent: "word" if isinstance(sent, str) else "tool",
    ),
]
UsePenalty = Annotated[float, Field(ge=-2.0, le=2.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, lt=2**31)]
TokenKey = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
Bias = Annotated[float, Field(ge=-100.0, le=100.0, allow_inf_nan=False)]
MAX_ANSWERS = 16
MAX_TOP_LOGPROBS = 20
MAX_BIASED = 1024
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
    """Options of the chat template, under vLLM's name. Only text models have others than this."""

    model_config = ConfigDict(extra="allow")

    enable_thinking: bool = False
    """The model thinks in words before it answers."""

    @property
    def extra_json(self) -> str:
        """The others, as a JSON object."""
        return json.dumps(self.model_extra or {})


class StreamOptions(WireModel):
    """What a stream sends in addition to the answer."""

    include_usage: bool = False
    """The tokens of the whole answer, in a last chunk."""
    continuous_usage_stats: bool = False
    """The tokens so far, in every chunk, under vLLM's name."""


class Neutral(WireModel):
    """OpenAI's options that no model here has. Clients send them with values that change nothing,
    and those are accepted."""

    functions: Annotated[list[Any], accepts_only([])] | None = None
    function_call: Annotated[Any, accepts_only("none", "auto")] = "none"


class ChatBody(Neutral):
    """POST /v1/chat/completions."""

    tools: Annotated[list[Tool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: ToolChoiceBody = "auto"
    """`none`: the model does not see the tools. `required`, or a tool by its name: the answer calls
    tools; for models that can be held to that."""
    parallel_tool_calls: bool = True
    """False: at most one call; for models that can be held to that."""
    response_format: ResponseFormat | None = None
    """What the answer is held to; for models that can be."""
    n: Annotated[int, Field(ge=1, le=MAX_ANSWERS)] = 1
    """How many answers; the seed of each is one more than that of the one before."""
    logprobs: bool = False
    """How probable each token was, by the model's own scores."""
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    """With `logprobs`: how many of the likeliest tokens are told, too."""
    logit_bias: Annotated[dict[TokenKey, Bias], Field(max_length=MAX_BIASED)] | None = None
    """By token, what is added to its score."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        None
    )
    """How much the model thinks before it answers; for models that can be told."""
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
    def biases(self) -> tuple[tuple[int, float], ...]:
        """`logit_bias` by number of the token."""
        return tuple((int(token), added) for token, added in (self.logit_bias or {}).items())

    @property
    def choice(self) -> ToolChoice:
        named = self.tool_choice.function.name if isinstance(self.tool_choice, NamedTool) else None
        return ToolChoice(self.tool_choice == "required", named, self.parallel_tool_calls)

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools that the model is told of."""
        return () if self.tool_choice == "none" else tuple(self.tools or ())

    @property
    def spoken(self) -> bool:
        return "audio" in (self.modalities or ())
