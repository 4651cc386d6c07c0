// Vercel's AI SDK: text, objects and functions over both of OpenAI's routes, speech, pictures.
// Arguments: base URL, model that answers, model that draws. Prints what came.

import { createOpenAI } from "@ai-sdk/openai";
import * as ai from "ai";

const MOST = { maxOutputTokens: 200, temperature: 0 };

const [baseURL, answers, draws] = process.argv.slice(2);
const openai = createOpenAI({ baseURL, apiKey: "no-key-is-needed" });
const schema = ai.jsonSchema({
  type: "object",
  properties: { sky: { enum: ["clear", "grey"] }, warm: { type: "boolean" } },
  required: ["sky", "warm"],
  additionalProperties: false,
});
const weather = ai.tool({
  description: "Tells the weather of a city.",
  inputSchema: schema,
  execute: async ({ sky }) => `It is ${sky}.`,
});

const count = async (parts) => {
  const counts = {};
  for await (const { type, error } of parts) {
    if (type === "error") throw error;
    counts[type] = (counts[type] ?? 0) + 1;
  }
  return counts;
};

async function askAll(model) {
  const prompt = "How is the weather?";
  const whole = await ai.generateText({ model, prompt, ...MOST });
  // Of a conversation that goes on, it only names what the server has kept.
  const turns = [{ role: "user", content: prompt }, ...whole.response.messages];
  const messages = [...turns, { role: "user", content: "And tomorrow?" }];
  const second = await ai.generateText({ model, messages, ...MOST });
  const streamed = ai.streamText({ model, prompt, ...MOST });
  const parts = await count(streamed.fullStream);
  const object = await ai.generateText({
    model,
    prompt,
    ...MOST,
    output: ai.Output.object({ schema }),
  });
  const called = ai.streamText({
    model,
    prompt,
    ...MOST,
    tools: { weather },
    providerOptions: { openai: { parallelToolCalls: false } },
    prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "none" }),
    stopWhen: ai.isStepCount(2),
  });
  const steps = await count(called.fullStream);
  const [{ toolCalls, toolResults }, last] = await called.steps;
  return {
    text: [whole.text, await streamed.text],
    read: [whole.usage.inputTokens, second.usage.inputTokens],
    usage: [whole.usage.outputTokens, (await streamed.usage).outputTokens],
    parts,
    object: object.output,
    steps,
    calls: toolCalls.map(({ toolName, input }) => [toolName, input]),
    results: toolResults.map(({ output }) => output),
    last: last.text,
  };
}

const speech = await ai.generateSpeech({
  model: openai.speech("tts-1"),
  text: "Good morning.",
  voice: "alloy",
  outputFormat: "wav",
});
const { images } = await ai.generateImage({
  model: openai.image(draws),
  prompt: "a red house",
  size: "64x64",
  n: 2,
});
console.log(
  JSON.stringify({
    responses: await askAll(openai(answers)),
    chat: await askAll(openai.chat(answers)),
    speech: { type: speech.audio.mediaType, bytes: speech.audio.uint8Array.length },
    pictures: images.map(({ mediaType, uint8Array }) => [mediaType, uint8Array.length]),
  }),
);
