"""The tabs of the Gradio app: their controls, and the endpoints that programs call.

Nothing is held back here (`concurrency_limit=None`): the speech server's admission says how many
requests may run, and its 429 says when to come again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import gradio as gr

from cantata_web.gradio_calls import ServerClient, as_data_url, authorization
from cantata_web.gradio_offer import Choices, Offer
from cantata_web.streaming_speech import SpokenText, StreamingSpeech

ENDPOINTS = ("speak", "clone", "chat", "draw", "transcribe")
"""Of the tabs, by their names."""
FIRST_TEXT = "It rained all night, but by the time we reached the harbour the sky had cleared."
_TEXTS = (
    FIRST_TEXT,
    "Please leave the parcel at number 24, between 2:30 and 4 p.m.",
    "Wait for it. [pause 1s] There it is!",
)
ANY_SEED = -1
_ATTESTED = "Who answers for the speaker's consent"
_CONSENT = "Use the voice of somebody who agrees. 3 to 15 seconds of clear speech are best."
_PROMPTS = ("red apple", "blue boat on the sea", "green tree under a yellow sun")

# What `SpokenText` becomes on its way to the browser; here the browser makes it by itself.
_PLAY = """
(text, voice, speed, model) => ({
  text, complete: true, turn: crypto.randomUUID?.() ?? String(Math.random()),
  request: Object.fromEntries(
    Object.entries({ voice, speed, model }).filter(([, value]) => value !== "" && value !== null),
  ),
})
"""

# WHY: the server checks the fields, and says what is valid. Gradio would name no field.
_CALLED = {"preprocess": False, "concurrency_limit": None}

Refresh = Callable[[Offer], list[Any]]
"""New properties of a tab's components, which `Filled.components` lists."""


def first_tab(offer: Offer) -> str | None:
    """The first tab with something to do; None: there is none."""
    return served[0] if (served := list_tabs(offer)) else None


def list_tabs(offer: Offer) -> list[str]:
    """The tabs with something to do."""
    served = {
        "Speak": offer.speaking,
        "Clone": offer.cloning,
        "Chat": offer.answering,
        "Draw": offer.painters,
        "Transcribe": offer.listening,
    }
    return [name for name, models in served.items() if models]


class Filled:
    """A tab whose menus follow the server's offer.

    Args:
        components: that `refresh` gives new properties to; the tab itself is the first.
        refresh: of an offer.
    """

    def __init__(self, components: list[Any], refresh: Refresh) -> None:
        self.components = components
        self.refresh = refresh


def add_speak(server: ServerClient, server_url: str, offer: Offer) -> Filled:
    """A text, spoken while it is made or into a file."""

    async def speak(text: str, voice: str, speed: float, model: str, request: gr.Request) -> str:
        """Speak a text; answers with an MP3 file.

        Args:
            text: what to say.
            voice: one of the model's voices; empty means its first.
            speed: 0.25 to 4; 1 is the voice's own.
            model: empty means the server's default.
        """
        fields = {"input": text, "voice": voice, "speed": speed, "model": model}
        return await server.speak(fields, authorization(request))

    speaking = offer.speaking
    with gr.Tab("Speak", id="Speak", visible=bool(speaking)) as tab:
        text = gr.Textbox(FIRST_TEXT, label="Text", lines=3)
        with gr.Row():
            model = _make_menu("Model", _label_alike(speaking))
            voice = _make_menu("Voice", _list_voices(offer, None))
            speed = gr.Slider(0.25, 4, 1, label="Speed")
        with gr.Row():
            play = gr.Button("Speak", variant="primary")
            save = gr.Button("Make a file")
        speech = StreamingSpeech(server_url=server_url)
        saved = gr.Audio(label="File", type="filepath", interactive=False, buttons=["download"])
        gr.Examples([[one] for one in _TEXTS], [text])
        # WHY: within its tab. Gradio counts all that is in `gr.Tabs` to number the tabs: after a
        # state between two of them, a tab that is opened takes the next one's place.
        known = gr.State(offer)
    given = [text, voice, speed, model]
    play.click(None, given, speech, js=_PLAY)
    save.click(speak, given, saved, api_name="speak", **_CALLED)
    model.change(
        lambda name, known: _make_menu("Voice", _list_voices(known, name)),
        [model, known],
        voice,
        api_visibility="private",
        show_progress="hidden",
    )

    def refresh(offer: Offer) -> list[Any]:
        models = _make_menu("Model", _label_alike(offer.speaking))
        shown = gr.Tab(visible=bool(offer.speaking))
        return [shown, models, _make_menu("Voice", _list_voices(offer, None)), offer]

    return Filled([tab, model, voice, known], refresh)


def add_clone(server: ServerClient, offer: Offer) -> Filled:
    """A text in the voice of a recording."""

    async def clone(
        recording: str,
        transcript: str,
        text: str,
        model: str,
        attested_by: str,
        request: gr.Request,
    ) -> str:
        """Speak a text in the voice of a recording; answers with an MP3 file.

        Args:
            recording: 3 to 15 seconds of one speaker, who agrees.
            transcript: what is said in it; empty if unknown.
            text: what to say.
            model: one that follows recordings; empty means the server's default.
            attested_by: who answers for the speaker's consent, where the server asks.
        """
        if not recording:
            raise gr.Error("Record a voice, or choose a file first.", print_exception=False)
        fields = {"input": text, "ref_audio": as_data_url(recording), "ref_text": transcript}
        fields |= {"model": model, "attested_by": attested_by}
        return await server.speak(fields, authorization(request))

    with gr.Tab("Clone", id="Clone", visible=bool(offer.cloning)) as tab:
        gr.Markdown(_CONSENT)
        recording = gr.Audio(label="Voice", type="filepath", sources=["microphone", "upload"])
        transcript = gr.Textbox("", label="What is said in it", placeholder="may stay empty")
        text = gr.Textbox(FIRST_TEXT, label="Text", lines=3)
        model = _make_menu("Model", _label_alike(offer.cloning))
        attested_by = gr.Textbox("", label=_ATTESTED, placeholder="your name, if the server asks")
        button = gr.Button("Speak like this", variant="primary")
        saved = gr.Audio(label="Speech", type="filepath", interactive=False, buttons=["download"])
    given = [recording, transcript, text, model, attested_by]
    button.click(clone, given, saved, api_name="clone", concurrency_limit=None)

    def refresh(offer: Offer) -> list[Any]:
        return [
            gr.Tab(visible=bool(offer.cloning)),
            _make_menu("Model", _label_alike(offer.cloning)),
        ]

    return Filled([tab, model], refresh)


def add_chat(server: ServerClient, server_url: str, offer: Offer) -> Filled:
    """A conversation with files, whose answers may be spoken while they are being written."""

    async def chat(
        message: dict[str, Any],
        history: list[dict[str, Any]],
        model: str,
        aloud: bool,
        request: gr.Request,
    ) -> AsyncIterator[tuple[str, SpokenText | None]]:
        """Answer a message, which may have pictures, sounds and videos."""
        turns = [one for turn in history if (one := _to_message(turn["role"], turn["content"]))]
        content = [message["text"], *({"path": path} for path in message.get("files", ()))]
        asked = _to_message("user", content)
        if asked is None:
            raise gr.Error("Write a message, or add a file.", print_exception=False)
        answer = ""
        async for piece in server.answer([*turns, asked], model, authorization(request)):
            answer += piece
            yield answer, SpokenText(answer, complete=False) if aloud else None
        yield answer, SpokenText(answer) if aloud else None

    with gr.Tab("Chat", id="Chat", visible=bool(offer.answering)) as tab:
        speech = StreamingSpeech(server_url=server_url, render=False)
        model = _make_menu("Model", _label_alike(offer.answering), render=False)
        aloud = gr.Checkbox(False, label="Speak the answers", render=False)
        gr.ChatInterface(
            chat,
            multimodal=True,
            textbox=gr.MultimodalTextbox(
                file_types=["image", "audio", "video"], file_count="multiple", render=False
            ),
            additional_inputs=[model, aloud],
            additional_outputs=[speech],
            flagging_mode="never",
            concurrency_limit=None,
            api_name="chat",
            analytics_enabled=False,
        )
        speech.render()

    def refresh(offer: Offer) -> list[Any]:
        can_speak = bool(offer.speaking)
        return [
            gr.Tab(visible=bool(offer.answering)),
            _make_menu("Model", _label_alike(offer.answering)),
            gr.Checkbox(visible=can_speak),
            gr.update(visible=can_speak),
        ]

    return Filled([tab, model, aloud, speech], refresh)


def add_draw(server: ServerClient, offer: Offer) -> Filled:
    async def draw(
        prompt: str,
        size: str,
        seed: int,
        model: str,
        request: gr.Request,
        progress: gr.Progress = gr.Progress(),  # noqa: B008 - how Gradio injects it
    ) -> tuple[str, str]:
        """Draw a picture; answers with a PNG file and the seed it was drawn with.

        Args:
            prompt: what it should show.
            size: WIDTHxHEIGHT in pixels; empty means the model's own.
            seed: the same seed gives the same picture; -1 is another one each time.
            model: empty means the server's first that draws.
        """
        own_seed = None if seed == ANY_SEED else seed
        fields = {"prompt": prompt, "size": size, "seed": own_seed, "model": model}

        def report(done: tuple[int, int]) -> None:
            progress(done, desc="drawing", unit="steps")

        path, drawn_with = await server.draw(fields, authorization(request), report)
        return path, str(drawn_with)

    painters = offer.painters
    with gr.Tab("Draw", id="Draw", visible=bool(painters)) as tab:
        prompt = gr.Textbox(_PROMPTS[0], label="Prompt", lines=2)
        with gr.Row():
            model = _make_menu("Model", _label_alike(tuple(painters)))
            size = gr.Textbox("", label="Size", placeholder=_find_default_size(offer))
            seed = gr.Number(ANY_SEED, label="Seed (-1: any)", precision=0, minimum=ANY_SEED)
        button = gr.Button("Draw", variant="primary")
        picture = gr.Image(label="Picture", type="filepath", format="png", interactive=False)
        used = gr.Textbox(label="Drawn with the seed", interactive=False)
        gr.Examples([[one] for one in _PROMPTS], [prompt])
    given = [prompt, size, seed, model]
    button.click(draw, given, [picture, used], api_name="draw", **_CALLED)

    def refresh(offer: Offer) -> list[Any]:
        shown = gr.Tab(visible=bool(offer.painters))
        models = _make_menu("Model", _label_alike(tuple(offer.painters)))
        return [shown, models, gr.Textbox(placeholder=_find_default_size(offer))]

    return Filled([tab, model, size], refresh)


def add_transcribe(server: ServerClient, offer: Offer) -> Filled:
    """What is said in a recording."""

    async def transcribe(
        recording: dict[str, Any] | None, form: str, model: str, request: gr.Request
    ) -> str:
        """Write down what is said in a recording.

        Args:
            recording: a sound file.
            form: text, srt or vtt.
            model: empty means the server's first that listens.
        """
        if not recording:
            raise gr.Error("Record something, or choose a file first.", print_exception=False)
        fields = {"response_format": form or "text", "model": model}
        return await server.transcribe(recording["path"], fields, authorization(request))

    with gr.Tab("Transcribe", id="Transcribe", visible=bool(offer.listening)) as tab:
        recording = gr.Audio(label="Recording", type="filepath", sources=["upload", "microphone"])
        with gr.Row():
            form = gr.Radio(
                [("Text", "text"), ("Subtitles (SRT)", "srt"), ("Subtitles (WebVTT)", "vtt")],
                value="text",
                label="As",
            )
            model = _make_menu("Model", _label_alike(offer.listening))
        button = gr.Button("Write it down", variant="primary")
        heard = gr.Textbox(label="Transcript", lines=6)
    given = [recording, form, model]
    button.click(transcribe, given, heard, api_name="transcribe", **_CALLED)

    def refresh(offer: Offer) -> list[Any]:
        return [
            gr.Tab(visible=bool(offer.listening)),
            _make_menu("Model", _label_alike(offer.listening)),
        ]

    return Filled([tab, model], refresh)


def _make_menu(label: str, choices: Choices, *, render: bool = True) -> gr.Dropdown:
    """A menu that also takes what the server does not list, such as an alias; programs may leave
    it empty."""
    first = choices[0][1] if choices else ""
    menu = gr.Dropdown(
        list(choices), value=first, label=label, allow_custom_value=True, render=render
    )
    # WHY: Gradio would tell programs that nothing else is valid, not even what is loaded later.
    named = ", ".join(value for _, value in choices)
    described = {"additional_description": f"such as {named}"} if named else {}
    menu.api_info = lambda: {"type": "string", **described}
    return menu


def _label_alike(names: tuple[str, ...]) -> Choices:
    return tuple((name, name) for name in names)


def _list_voices(offer: Offer, model: str | None) -> Choices:
    """The voices of a model, or of the server's default."""
    return offer.voices.get(model or next(iter(offer.voices), ""), ())


def _find_default_size(offer: Offer) -> str:
    return next(iter(offer.painters.values()), "")


def _to_message(role: str, content: Any) -> dict[str, Any] | None:
    """A turn of Gradio's as a message of the API; None: it is empty."""
    parts = [part for one in _put_in_list(content) if (part := _to_part(one))]
    if role == "assistant":
        text = " ".join(part["text"] for part in parts if part["type"] == "text")
        return {"role": role, "content": text} if text else None
    return {"role": role, "content": parts} if parts else None


def _put_in_list(content: Any) -> list[Any]:
    return list(content) if isinstance(content, list | tuple) else [content]


def _to_part(one: Any) -> dict[str, Any] | None:
    if isinstance(one, str):
        return {"type": "text", "text": one} if one else None
    if one.get("type") == "text":
        return _to_part(one["text"])
    path = one["path"] if "path" in one else one["file"]["path"]
    url = as_data_url(path)
    kind = url.removeprefix("data:").partition("/")[0]
    field = f"{kind}_url" if kind in ("image", "audio", "video") else "image_url"
    return {"type": field, field: {"url": url}}
