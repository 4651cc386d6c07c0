// What was said in one chat, and what of it goes into requests and files. No DOM here.

import { t } from "../texts.js";

/**
 * @typedef {{role: "user" | "assistant" | "tool", text: string, pictures: string[], sound?: string,
 *   thoughts?: string, calls?: {id, name, arguments}[], callId?: string}} Message `pictures` are
 *   data URLs, `sound` is base64, `callId` names the call that a tool's message answers
 */
export class Conversation {
  /** @type {Message[]} */
  messages;

  constructor(messages = []) {
    this.messages = messages;
  }

  get empty() {
    return this.messages.length === 0;
  }

  add(message) {
    const whole = { text: "", pictures: [], ...message };
    this.messages.push(whole);
    return whole;
  }

  /** The last answer is taken away, and what a tool said to it; returns whether there was one. */
  forgetAnswer() {
    const last = this.messages.findLastIndex(({ role }) => role === "user");
    this.messages.length = last + 1;
    return last >= 0;
  }

  /** Calls that no message answers yet. */
  get openCalls() {
    const answered = new Set(this.messages.map(({ callId }) => callId));
    return this.messages.flatMap(({ calls = [] }) => calls).filter(({ id }) => !answered.has(id));
  }

  /** As the API's `messages`. @param {string} instructions */
  toRequest(instructions) {
    const first = instructions.trim() === "" ? [] : [{ role: "system", content: instructions }];
    return [...first, ...this.messages.map(asBody)];
  }

  /** Without sound, which would fill the browser's storage. */
  toStore() {
    return this.messages.map(({ sound, ...kept }) => kept);
  }

  toMarkdown() {
    const parts = this.messages.map(({ role, text, pictures, thoughts, calls = [] }) => {
      const who = { user: t("You"), assistant: t("Answer"), tool: t("Tool") }[role];
      const lines = [`## ${who}`];
      if (thoughts) lines.push(`> ${thoughts.trim().replaceAll("\n", "\n> ")}`);
      lines.push(...pictures.map((url, i) => `![${t("Picture {number}", { number: i + 1 })}](${url})`));
      if (text !== "") lines.push(text);
      lines.push(...calls.map((call) => `\`${call.name}(${call.arguments})\``));
      return lines.join("\n\n");
    });
    return `${parts.join("\n\n")}\n`;
  }
}

function asBody({ role, text, pictures, sound, calls, callId }) {
  if (role === "tool") return { role, tool_call_id: callId, content: text };
  const images = pictures.map((url) => ({ type: "image_url", image_url: { url } }));
  if (role === "assistant") {
    const body = { role, content: text };
    if (images.length > 0) body.images = images;
    if (calls?.length > 0) {
      body.tool_calls = calls.map(({ id, name, arguments: given }) => ({
        id,
        type: "function",
        function: { name, arguments: given },
      }));
    }
    return body;
  }
  const parts = [...images];
  if (sound) parts.push({ type: "input_audio", input_audio: { data: sound, format: "wav" } });
  if (parts.length === 0) return { role, content: text };
  if (text !== "") parts.push({ type: "text", text });
  return { role, content: parts };
}
