"""A chat whose answers are spoken while they are being written: first start
`cantata serve --allow-origin http://127.0.0.1:7860`."""

import os
import time

import gradio as gr

from cantata_web import SpokenText, StreamingSpeech


def words(message: str):
    """In place of a language model."""
    for word in f"You wrote, {message} That is all, and you heard it while I wrote it.".split():
        time.sleep(0.1)
        yield word + " "


def answer(message: str, history: list):
    history += [{"role": "user", "content": message}, {"role": "assistant", "content": ""}]
    for word in words(message):
        history[-1]["content"] += word
        yield "", history, SpokenText(history[-1]["content"], complete=False)
    yield "", history, SpokenText(history[-1]["content"])


def describe(event: gr.EventData):
    return f"{event.seconds:.1f} s of speech"


with gr.Blocks(title="A chat that speaks") as demo:
    chat, message = gr.Chatbot(), gr.Textbox(label="Message")
    speech = StreamingSpeech(server_url=os.environ.get("CANTATA_URL", "http://127.0.0.1:8000"))
    heard = gr.Textbox(label="Heard")
    message.submit(answer, [message, chat], [message, chat, speech], show_progress="hidden")
    speech.done(describe, outputs=heard)

if __name__ == "__main__":
    demo.launch()
