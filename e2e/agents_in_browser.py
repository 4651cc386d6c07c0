"""Holds a spoken turn with OpenAI's Agents SDK for browsers: python -m e2e.agents_in_browser URL
SECRET QUESTION FOLDER, where QUESTION is a WAV file that the microphone hears.

Writes what was heard (`heard.webm`) and prints what the SDK reports, as JSON.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from .chromium import launch_chromium

SDK = Path(__file__).parent.joinpath(
    "clients/node/node_modules/@openai/agents-realtime/dist/bundle/openai-realtime-agents.umd.js"
)
TURN = """
async ([base, secret]) => {
  const { RealtimeAgent, RealtimeSession, OpenAIRealtimeWebRTC } = window.OpenAIAgentsRealtime;
  const audioElement = Object.assign(new Audio(), { autoplay: true });
  const transport = new OpenAIRealtimeWebRTC({ baseUrl: `${base}/realtime/calls`, audioElement });
  const errors = [];
  const told = [];
  const agent = new RealtimeAgent({ name: "Echo", instructions: "Repeat what you hear." });
  const session = new RealtimeSession(agent, { transport });
  session.on("error", ({ error }) => errors.push(JSON.stringify(error)));
  const chunks = [];
  const stopped = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`no answer after ${told} ${errors}`)), 60000);
    transport.on("*", ({ type }) => {
      told.push(type);
      if (type === "output_audio_buffer.stopped") resolve();
    });
  });
  audioElement.addEventListener("loadstart", () => {
    const recorder = new MediaRecorder(audioElement.srcObject);
    recorder.ondataavailable = ({ data }) => chunks.push(data);
    recorder.start();
    window.finish = () => new Promise((resolve) => {
      recorder.onstop = resolve;
      recorder.stop();
    });
  });
  await session.connect({ apiKey: secret });
  await stopped;
  await new Promise((resolve) => setTimeout(resolve, 1000)); // the browser plays a little later
  await window.finish();
  const bytes = new Uint8Array(await new Blob(chunks).arrayBuffer());
  const answer = session.history.findLast(({ role }) => role === "assistant");
  session.close();
  return {
    errors,
    text: answer.content.map(({ transcript }) => transcript ?? "").join(""),
    sound: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")),
  };
}
"""


def main(url: str, secret: str, question: str, folder: str) -> None:
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright, Path(question), once=True)
        page = browser.new_context(bypass_csp=True, permissions=["microphone"]).new_page()
        page.goto(f"{url}/health")
        page.add_script_tag(path=SDK)
        answer = page.evaluate(TURN, [f"{url}/v1", secret])
        browser.close()
    Path(folder, "heard.webm").write_bytes(base64.b64decode(answer.pop("sound")))
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
