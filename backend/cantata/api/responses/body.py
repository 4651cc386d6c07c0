"""The body of POST /v1/responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from cantata.api.chat.body import MAX_TOP_LOGPROBS
from cantata.api.chat.messages import MAX_MESSAGES, MAX_PARTS, ONE_OR_LIST
from cantata.api.chat.response_format import JsonObjectFormat, NamedSchema, TextFormat
from cantata.api.chat.tools import MAX_TOOLS, FunctionName
from cantata.api.compat_fields import accepts_only
from cantata.api.schemas import Name, Temperature, Text, WireModel


class SentText(WireModel):
    """Some text, of a user or of an earlier answer."""

    type: Literal["input_text", "output_text", "text"]
    text: Text


class SentImage(WireModel):
    """A picture."""

    type: Literal["input_image"]
    image_url: str
    """`data:image/...;base64,...` or, where the server allows it, an http(s) URL."""


SentPart = Annotated[SentText | SentImage, Discriminator("type")]
SentContent = Annotated[
    Annotated[Text, Tag("one")]
    | Annotated[list[SentPart], Field(min_length=1, max_length=MAX_PARTS), Tag("list")],
    ONE_OR_LIST,
]


class MessageItem(WireModel):
    """A message."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: SentContent


class CallItem(WireModel):
    """A call of an earlier answer."""

    type: Literal["function_call"]
    call_id: Name
    name: FunctionName
    arguments: Text


class CallOutputItem(WireModel):
    """The result of a call."""

    type: Literal["function_call_output"]
    call_id: Name
    output: Annotated[
        Annotated[Text, Tag("one")]
        | Annotated[list[SentText], Field(max_length=MAX_PARTS), Tag("list")],
        ONE_OR_LIST,
    ]


class ReasoningItem(WireModel):
    """A thought of an earlier answer; it is passed over."""

    type: Literal["reasoning"]


class ItemReference(WireModel):
    """An item of an earlier response that is kept."""

    type: Literal["item_reference"] = "item_reference"
    id: Name


def _classify(sent: Any) -> Any:
    """Messages and references may come without a type."""
    if not isinstance(sent, dict):
        return getattr(sent, "type", None)
    is_reference = "id" in sent and "role" not in sent
    return sent.get("type") or ("item_reference" if is_reference else "message")


InputItem = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[CallOutputItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")]
    | Annotated[ItemReference, Tag("item_reference")],
    Discriminator(
        _classify,
        custom_error_type="item",
        custom_error_message="type must be message, function_call, function_call_output, "
        "item_reference or reasoning",
    ),
]
Input = Annotated[
    Annotated[Text, Tag("one")]
    | Annotated[list[InputItem], Field(min_length=1, max_length=MAX_MESSAGES), Tag("list")],
    ONE_OR_LIST,
]


class OfferedFunction(WireModel):
    """A function that the client runs."""

    type: Literal["function"]
    name: FunctionName
    description: Text | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionChoice(WireModel):
    """The function that the answer calls."""

    type: Literal["function"]
    name: FunctionName


class NamedSchemaFormat(NamedSchema):
    """JSON that follows a schema."""

    type: Literal["json_schema"]


class TextOptions(WireModel):
    """What the answer is held to."""

    format: (
        Annotated[TextFormat | JsonObjectFormat | NamedSchemaFormat, Discriminator("type")] | None
    ) = None


class ReasoningOptions(WireModel):
    """How much the model thinks."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None

    @property
    def asks_for_some(self) -> bool:
        """Whether the model is to think at all."""
        return self.effort not in (None, "none")


class ResponsesBody(WireModel):
    """POST /v1/responses."""

    input: Input
    model: Name | None = None
    """Absent: the server's first model that answers messages."""
    instructions: Text | None = None
    """A first message, of this response alone."""
    previous_response_id: Name | None = None
    """The response that this one continues."""
    store: bool = True
    """Whether it can be retrieved and continued."""
    stream: bool = False
    tools: Annotated[list[OfferedFunction], Field(max_length=MAX_TOOLS, default_factory=list)]
    tool_choice: Annotated[
        Annotated[Literal["none", "auto", "required"], Tag("word")]
        | Annotated[FunctionChoice, Tag("tool")],
        Discriminator(lambda sent: "word" if isinstance(sent, str) else "tool"),
    ] = "auto"
    parallel_tool_calls: bool = True
    text: TextOptions = TextOptions()
    reasoning: ReasoningOptions = ReasoningOptions()
    max_output_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    temperature: Temperature | None = None
    top_p: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)] | None = None
    metadata: Annotated[dict[str, Text], Field(max_length=16, default_factory=dict)]
    background: Annotated[bool, accepts_only(False)] = False
    truncation: Annotated[str, accepts_only("disabled")] = "disabled"
    conversation: Annotated[Any, accepts_only()] = None
    prompt: Annotated[Any, accepts_only()] = None
    max_tool_calls: Annotated[Any, accepts_only()] = None
    include: list[str] = Field(default_factory=list)
    """What else is told: `message.output_text.logprobs`; other values tell of nothing here."""
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)] = 0
    """How many of the likeliest tokens are told with each token of the words."""

    @property
    def logprobs(self) -> bool:
        """Whether the probabilities of tokens are told."""
        return self.top_logprobs > 0 or "message.output_text.logprobs" in self.include
