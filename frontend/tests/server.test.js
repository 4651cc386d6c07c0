import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";

import { KeyStore } from "../cantata_web/static/api/keys.js";
import { Server } from "../cantata_web/static/api/server.js";

const KEY = "a-key-for-the-tests";

class Storage {
  items = new Map();
  getItem = (name) => this.items.get(name) ?? null;
  setItem = (name, value) => this.items.set(name, value);
  removeItem = (name) => this.items.delete(name);
}

let asked; // [url, headers] of each fetch
let answer; // (headers) => Response

beforeEach(() => {
  asked = [];
  globalThis.document = { location: { origin: "http://page.example" } };
  globalThis.fetch = async (url, { headers }) => {
    asked.push([String(url), headers]);
    return answer(headers);
  };
});

function serverAt(base, askKey = () => assert.fail("no key should be asked for")) {
  const keys = new KeyStore(new URL(base), new Storage());
  return { server: new Server(new URL(base), keys, askKey), keys };
}

const refused = (status, error, headers = {}) =>
  new Response(JSON.stringify({ error }), { status, headers });
const locked = (headers) =>
  headers.Authorization === `Bearer ${KEY}`
    ? new Response("{}")
    : refused(401, { message: "this server needs an API key", code: "invalid_api_key" });

test("a key is asked for, kept, and shown from then on", async () => {
  const { server, keys } = serverAt("http://api.example/", async () => KEY);
  answer = locked;
  assert.equal((await server.request("metrics")).status, 200);
  await server.request("metrics");
  assert.equal(asked.length, 3);
  assert.deepEqual(keys.subprotocols, ["cantata", `cantata-api-key.${KEY}`]);
});

test("a wrong key is asked for again, and none ends it", async () => {
  const questions = [];
  const keys = ["a-wrong-key-for-this", null];
  const { server } = serverAt("http://api.example/", async (sentence) => {
    questions.push(sentence);
    return keys.shift();
  });
  answer = locked;
  await assert.rejects(server.request("metrics"), /needs an API key/);
  assert.match(questions[1], /does not know this key/);
});

test("a key is another server's secret", () => {
  const storage = new Storage();
  new KeyStore(new URL("http://one.example/"), storage).key = KEY;
  assert.equal(new KeyStore(new URL("http://two.example/"), storage).key, null);
});

test("a full server's response has a retry time", async () => {
  const { server } = serverAt("http://page.example/");
  const error = { message: "16 requests are running", code: "rate_limit_exceeded" };
  answer = () => refused(429, error, { "retry-after": "2" });
  await assert.rejects(server.request("v1/audio/speech"), {
    status: 429,
    message: "The server is full at the moment. Try again in 2 s.",
  });
});

test("an answer without an error body is reported by its status", async () => {
  const { server } = serverAt("http://page.example/");
  answer = () => new Response("<html>bad gateway</html>", { status: 502 });
  await assert.rejects(server.request("ready"), /answered 502/);
});

test("where another origin is silent, CORS may be why", async () => {
  answer = () => Promise.reject(new TypeError("Failed to fetch"));
  const elsewhere = serverAt("http://api.example/").server;
  await assert.rejects(elsewhere.request("ready"), /--allow-origin http:\/\/page\.example/);
  const own = serverAt("http://page.example/").server;
  await assert.rejects(own.request("ready"), /Is it running\?/);
});

test("paths are looked for below the base", async () => {
  const { server } = serverAt("http://api.example/voice/");
  answer = () => new Response("{}");
  await server.json("v1/audio/models");
  assert.equal(asked[0][0], "http://api.example/voice/v1/audio/models");
});

test("where the browser keeps no key, it lasts as long as the page", () => {
  class Refusing extends Storage {
    setItem = () => {
      throw new DOMException("no", "QuotaExceededError");
    };
  }
  for (const storage of [null, new Refusing()]) {
    const keys = new KeyStore(new URL("http://server.example"), storage);
    assert.deepEqual(keys.headers, {});
    keys.key = KEY;
    assert.deepEqual(keys.headers, { Authorization: `Bearer ${KEY}` });
    keys.key = null;
    assert.equal(keys.key, null);
  }
});
