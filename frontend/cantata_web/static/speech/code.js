// A request as a program that makes the same speech.

/** The languages, and what writes each. */
export const LANGUAGES = [
  { id: "curl", name: "curl", write: curl },
  { id: "python", name: "Python (openai)", write: python },
  { id: "fetch", name: "JavaScript: fetch", write: javascriptFetch },
  { id: "websocket", name: "JavaScript: WebSocket", write: javascriptSocket },
];

const KEY = "CANTATA_API_KEY"; // the key itself is never written into code
const OPENAI_FIELDS = ["model", "voice", "input", "response_format", "speed", "instructions"];

/**
 * @typedef {{base: URL, body: object, needsKey: boolean}} Request `base` is where the API's paths
 *   start; `body` has the fields of POST /v1/audio/speech
 */

// The here-document is taken as it is, so nothing in the text needs quoting.
function curl({ base, body, needsKey }) {
  return lines([
    `curl --fail-with-body ${shellQuoted(new URL("v1/audio/speech", base).href)} \\`,
    needsKey ? `  -H "Authorization: Bearer $${KEY}" \\` : null,
    "  -H 'Content-Type: application/json' \\",
    `  -o ${fileOf(body)} --data-binary @- <<'JSON'`,
    JSON.stringify(body, null, 2),
    "JSON",
  ]);
}

// JSON's strings and numbers are Python's too.
function python({ base, body, needsKey }) {
  const others = Object.keys(body).filter((name) => !OPENAI_FIELDS.includes(name));
  const extra = others.map((name) => `${JSON.stringify(name)}: ${JSON.stringify(body[name])}`);
  const key = needsKey ? `os.environ["${KEY}"]` : '"none"';
  return lines([
    needsKey ? "import os\n" : null,
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url=${JSON.stringify(new URL("v1", base).href)}, api_key=${key})`,
    "with client.audio.speech.with_streaming_response.create(",
    ...OPENAI_FIELDS.filter((name) => body[name] !== undefined).map(
      (name) => `    ${name}=${JSON.stringify(body[name])},`,
    ),
    extra.length > 0 ? `    extra_body={${extra.join(", ")}},` : null,
    ") as response:",
    `    response.stream_to_file("${fileOf(body)}")`,
  ]);
}

function javascriptFetch({ base, body, needsKey }) {
  return lines([
    needsKey ? `const key = "..."; // your API key` : null,
    `const response = await fetch(${JSON.stringify(new URL("v1/audio/speech", base).href)}, {`,
    '  method: "POST",',
    needsKey
      ? '  headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },'
      : '  headers: { "Content-Type": "application/json" },',
    `  body: JSON.stringify(${indented(body)}),`,
    "});",
    "if (!response.ok) throw new Error(await response.text());",
    "const file = await response.blob();",
  ]);
}

function javascriptSocket({ base, body, needsKey }) {
  const { input, response_format: _, ...config } = body;
  const url = new URL("v1/audio/speech/stream", base);
  url.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  const keyed = ', ["cantata", "cantata-api-key." + key]';
  return lines([
    needsKey ? `const key = "..."; // your API key` : null,
    `const socket = new WebSocket(${JSON.stringify(url.href)}${needsKey ? keyed : ""});`,
    'socket.binaryType = "arraybuffer";',
    "const chunks = []; // 16-bit PCM, as it arrives",
    "await new Promise((resolve, reject) => {",
    "  socket.onopen = () => {",
    `    const config = ${indented({ type: "session.config", ...config }, 4)};`,
    "    socket.send(JSON.stringify(config));",
    `    socket.send(JSON.stringify({ type: "input.text", text: ${JSON.stringify(input)} }));`,
    '    socket.send(JSON.stringify({ type: "input.done" }));',
    "  };",
    "  socket.onmessage = ({ data }) => {",
    '    if (typeof data !== "string") return chunks.push(data);',
    "    const message = JSON.parse(data);",
    '    if (message.type === "error") reject(new Error(message.error.message));',
    '    if (message.type === "input.spoken") resolve();',
    "  };",
    '  socket.onclose = () => reject(new Error("the connection closed"));',
    "});",
    "socket.close();",
    "const samples = new Int16Array(await new Blob(chunks).arrayBuffer());",
  ]);
}

function lines(all) {
  return `${all.filter((line) => line !== null).join("\n")}\n`;
}

function indented(value, by = 2) {
  return JSON.stringify(value, null, 2).replaceAll("\n", `\n${" ".repeat(by)}`);
}

function shellQuoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fileOf(body) {
  return `cantata.${body.response_format}`;
}
