"""Speaks what is typed. First start `cantata serve --allow-origin http://127.0.0.1:7860`."""

import os

import gradio as gr

from gradio_streaming_speech import StreamingSpeech

with gr.Blocks(title="Speech as it is made") as demo:
    text = gr.Textbox(label="Text", placeholder="Type, then press Enter")
    speech = StreamingSpeech(server_url=os.environ.get("CANTATA_URL", "http://127.0.0.1:8000"))
    text.submit(lambda text: text, text, speech)
    gr.Examples(["Good morning.", "How far is it to the river?"], text)

if __name__ == "__main__":
    demo.launch()
