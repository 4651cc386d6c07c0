import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";

import { SpeechError } from "../cantata_web/static/api/errors.js";
import { KeptBooks } from "../cantata_web/static/books/keptbooks.js";
import { readSpeakers } from "../cantata_web/static/books/speakers.js";
import { Book } from "../cantata_web/static/read/book.js";

const book = (id, fields = {}) => ({
  id, status: "queued", title: id, sentences: 3, spoken: 0, seconds: 0, ...fields,
});

// Keeps books as the server does, and sends their events when a test says so.
class FakeServer {
  hasKey = false;
  base = new URL("http://server.example/api/");
  kept = [];
  asked = [];
  streams = new Map(); // controllers by id
  broken = 0; // connections that break at once

  async json(path, options = {}) {
    this.asked.push([options.method ?? "GET", path, options.body]);
    if (path === "v1/jobs" && options.method === "POST") {
      this.kept.unshift(book("new"));
      return this.kept[0];
    }
    if (path === "v1/jobs") return { data: this.kept.map((one) => ({ ...one, files: null })) };
    const found = this.kept.find(({ id }) => path === `v1/jobs/${id}`);
    if (found === undefined) throw new SpeechError("None.", { status: 404 });
    return { files: [{ name: `${found.id}.m4b`, bytes: 1 }], ...found };
  }

  async request(path, { headers = {}, signal, method = "GET" } = {}) {
    this.asked.push([method, path, headers["Last-Event-ID"] ?? null]);
    const [, , id] = path.split("/");
    if (method !== "GET") {
      this.change(id, { status: "cancelled" });
      return new Response("{}");
    }
    const body = new ReadableStream({
      start: (controller) => {
        this.streams.set(id, controller);
        signal.addEventListener("abort", () => {
          controller.error(new DOMException("aborted", "AbortError"));
          this.streams.delete(id);
        });
      },
    });
    if (this.broken > 0) {
      this.broken -= 1;
      this.streams.get(id).error(new TypeError("network"));
    }
    return new Response(body);
  }

  change(id, fields) {
    this.kept = this.kept.map((one) => (one.id === id ? { ...one, ...fields } : one));
  }

  send(id, step, data) {
    const text = `id: ${step}\ndata: ${JSON.stringify(data)}\n\n`;
    this.streams.get(id).enqueue(new TextEncoder().encode(text));
  }

  followed() {
    return this.asked.filter(([, path]) => path.endsWith("/events")).map(([, path, last]) => [path, last]);
  }
}

let server, books;

beforeEach(() => {
  server = new FakeServer();
  books = new KeptBooks(server, [0]);
});

/** Resolves when a change has made it so. */
async function until(holds) {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}

test("nobody is asked while nobody looks; then two are followed, the oldest first", async () => {
  server.kept = [book("c"), book("b"), book("a", { status: "speaking", spoken: 2 })];
  assert.deepEqual(server.asked, []);
  books.watch(true);
  await until(() => server.streams.size === 2);
  assert.deepEqual(server.followed(), [["v1/jobs/a/events", "2"], ["v1/jobs/b/events", null]]);
  books.watch(false);
  await until(() => server.streams.size === 0);
  books.watch(true);
  await until(() => server.streams.size === 2);
  books.watch(false);
});

test("a book gets on, ends with its files, and the next one is followed", async () => {
  server.kept = [book("c"), book("b"), book("a")];
  books.watch(true);
  await until(() => server.streams.size === 2);
  server.send("a", 2, { type: "job.speaking" });
  server.send("a", 3, { type: "job.progress", spoken: 1, sentences: 3, seconds: 1.5, chapter: 1 });
  await until(() => books.all[2].spoken === 1);
  assert.deepEqual([books.all[2].status, books.all[2].seconds], ["speaking", 1.5]);
  server.send("a", 4, { type: "job.writing" });
  await until(() => books.all[2].status === "writing");
  server.change("a", { status: "completed", spoken: 3, seconds: 4 });
  server.send("a", 5, { type: "job.completed" });
  server.streams.get("a").close();
  await until(() => books.all[2].files !== null && server.streams.size === 3);
  assert.equal(books.all[2].files[0].name, "a.m4b");
  assert.equal(server.followed().at(-1)[0], "v1/jobs/c/events");
  await books.look();
  assert.equal(books.all[2].files[0].name, "a.m4b", "the list has none, and they are still known");
  books.watch(false);
});

test("a connection that breaks is made again, from the last step", async () => {
  server.kept = [book("a")];
  books.watch(true);
  await until(() => server.streams.size === 1);
  server.send("a", 7, { type: "job.progress", spoken: 2, seconds: 2 });
  await until(() => books.all[0].spoken === 2);
  server.broken = 2;
  server.streams.get("a").error(new TypeError("network"));
  await until(() => server.followed().length === 4);
  assert.deepEqual(server.followed().map(([, last]) => last), [null, "7", "7", "7"]);
  books.watch(false);
});

test("a document is a form, a text is JSON", async () => {
  const file = new File(["x"], "a.pdf");
  await books.begin({ file }, { voice: "ben", voices: { Ann: "ruby" }, speed: 1.5 });
  const form = server.asked[0][2];
  assert.deepEqual([...form.keys()], ["file", "voice", "voices", "speed"]);
  assert.equal(form.get("file").name, "a.pdf");
  assert.deepEqual(JSON.parse(form.get("voices")), { Ann: "ruby" });
  await books.begin({ text: "# One" }, { voice: "ben" });
  assert.deepEqual(JSON.parse(server.asked[2][2]), { voice: "ben", input: "# One" });
  assert.deepEqual(books.all.map(({ id }) => id), ["new", "new"]);
});

test("what is cancelled is not followed any more", async () => {
  server.kept = [book("a")];
  books.watch(true);
  await until(() => server.streams.size === 1);
  await books.cancel("a");
  assert.equal(books.all[0].status, "cancelled");
  server.streams.get("a").close();
  await until(() => server.asked.filter(([, path]) => path === "v1/jobs/a").length === 1);
  books.watch(false);
});

test("files have an address, but where a key is needed", () => {
  assert.equal(
    books.addressOf("a", "the sea.m4b"),
    "http://server.example/api/v1/jobs/a/files/the%20sea.m4b",
  );
  server.hasKey = true;
  assert.equal(books.addressOf("a", "x.m4b"), null);
});

test("speakers are written with their voices", () => {
  assert.deepEqual(readSpeakers(" Alice = ruby,Bob=ben\n"), { Alice: "ruby", Bob: "ben" });
  assert.deepEqual(readSpeakers(" "), {});
  for (const wrong of ["Alice", "Alice=", "=ruby", "a=b=c"]) {
    assert.throws(() => readSpeakers(wrong), SpeechError);
  }
});

test("a book's headings are marked, so that its chapters are known", () => {
  const blocks = [{ kind: "heading", text: "One" }, { kind: "text", text: "Two." }];
  assert.equal(new Book("b", blocks).markdown, "# One\n\nTwo.");
});
