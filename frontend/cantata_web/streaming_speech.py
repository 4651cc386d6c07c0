"""`StreamingSpeech`: a Gradio component that speaks a text, also while it is being written."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any, ClassVar
from unittest.mock import patch

import gradio as gr
from gradio import component_meta

from .sources import WORKLET, fill, read, script

START = "component/start.js"


@dataclass(frozen=True)
class SpokenText:
    """A value of `StreamingSpeech`."""

    text: str
    complete: bool = True
    """False while it grows: its finished clauses are spoken already."""
    voice: str | None = None
    """Another voice than the component's, for this text."""
    speed: float | None = None


# WHY: Gradio writes a stub file beside the module of every component class, thousands of lines that
# type checkers reject, into a folder that may belong to somebody else. SCOPE: this class and those
# derived from it. It can go when Gradio asks first.
class _WithoutStub(component_meta.ComponentMeta):  # type: ignore[misc]
    def __new__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> Any:
        with patch.object(component_meta, "create_or_modify_pyi"):
            return super().__new__(cls, name, bases, attrs)


class StreamingSpeech(gr.HTML, metaclass=_WithoutStub):  # type: ignore[misc]
    """Plays speech in the browser while a Cantata server makes it.

    Its value is what to speak: a text, a `SpokenText`, or None for silence. A text that does not
    begin with the one under way cuts that off.

    Events, with what their `gr.EventData` has: `first_packet` (seconds from the request), `word`
    when it is heard (text, start and end in seconds), `done` (seconds that were played, underruns,
    whether it was stopped), `failed` (message).
    """

    EVENTS: ClassVar[list[Any]] = [*gr.HTML.EVENTS, "first_packet", "word", "done", "failed"]

    def __init__(
        self,
        value: str | SpokenText | None = None,
        *,
        server_url: str = "",
        model: str | None = None,
        voice: str | None = None,
        speed: float | None = None,
        seed: int | None = None,
        label: str | None = None,
        visible: bool = True,
        elem_id: str | None = None,
        elem_classes: list[str] | str | None = None,
        render: bool = True,
    ) -> None:
        """
        Args:
            value: what to speak. The first value is not spoken: browsers play nothing before the
                page has been clicked.
            server_url: the speech server, absolute or relative to the page. On another origin it
                must be started with `--allow-origin` and this page's origin.
            model: one of the server's; None is its default, also for the next three.
            voice: one of the model's.
            speed: 0.25 to 4.
            seed: for models that sample.
        """
        request = {"model": model, "voice": voice, "speed": speed, "seed": seed}
        # The constructor's own arguments, since Gradio reads them back.
        self.server_url = server_url
        self.model, self.voice, self.speed, self.seed = model, voice, speed, seed
        super().__init__(
            value,
            label=label,
            visible=visible,
            elem_id=elem_id,
            elem_classes=elem_classes,
            render=render,
            html_template=_escape_literal(
                fill("component", key=fill("key", id=f"cantata-{secrets.token_hex(4)}"))
            ),
            css_template=read("styles/component.css"),
            js_on_load=_read_script(),
            apply_default_css=False,
            server_url=server_url,
            request=_drop_empty(request),
        )

    def preprocess(self, payload: dict[str, Any] | None) -> str | None:
        """The text, where the component is an input."""
        return payload["text"] if payload else None

    def postprocess(self, value: str | SpokenText | None) -> dict[str, Any] | None:
        if value is None:
            return None
        if isinstance(value, str):
            value = SpokenText(value)
        return {
            "text": value.text,
            "complete": value.complete,
            "request": _drop_empty({"voice": value.voice, "speed": value.speed}),
            # The same text is spoken again: without it Gradio would see no change.
            "turn": secrets.token_hex(4) if value.complete else "",
        }

    def api_info(self) -> dict[str, Any]:
        return {"type": "object"}

    def example_payload(self) -> Any:
        return self.postprocess("Good morning.")

    def example_value(self) -> Any:
        return "Good morning."


def _drop_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _read_script() -> str:
    """Everything in one piece: other people's apps serve no files of ours."""
    worklet = f'new Blob([{json.dumps(script(WORKLET))}], {{ type: "text/javascript" }})'
    linked = script(START, {WORKLET: f"URL.createObjectURL({worklet})"})
    return f'{linked}$modules["{START}"].start({{ element, props, trigger, watch }});\n'


def _escape_literal(markup: str) -> str:
    """As Gradio's templates take it: they are JavaScript's template literals."""
    return markup.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
