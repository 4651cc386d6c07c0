// Vercel's AI SDK: a recording whole, and sound while it arrives.
// Arguments: base URL, file, file with s16le at 24 kHz. Prints what came.

import { readFile } from "node:fs/promises";
import { createOpenAI } from "@ai-sdk/openai";
import { experimental_streamTranscribe as streamTranscribe, transcribe } from "ai";

const FRAME_BYTES = 2400;

const [baseURL, file, samples] = process.argv.slice(2);
const openai = createOpenAI({ baseURL, apiKey: "no-key-is-needed" });

const { text, segments, language, durationInSeconds, warnings } = await transcribe({
  model: openai.transcription("whisper-1"),
  audio: await readFile(file),
  timestampGranularities: ["word", "segment"],
});

const sound = await readFile(samples);
const frames = ReadableStream.from(
  (function* () {
    for (let start = 0; start < sound.length; start += FRAME_BYTES) {
      yield new Uint8Array(sound.subarray(start, start + FRAME_BYTES));
    }
  })(),
);
const streamed = streamTranscribe({
  model: openai.transcription("gpt-transcribe"),
  audio: frames,
  inputAudioFormat: { type: "audio/pcm", rate: 24_000 },
  providerOptions: { openai: { language: "en" } },
});
const deltas = [];
for await (const part of streamed.fullStream) {
  if (part.type === "transcript-delta") deltas.push(part.delta);
}
console.log(
  JSON.stringify({
    whole: { text, segments, language, durationInSeconds, warnings },
    streamed: { deltas, text: await streamed.text },
  }),
);
