// The last takes: what was spoken, with its sound, kept in the browser's IndexedDB.

const MAX_TAKES = 10;
const MAX_BYTES = 64 * 2 ** 20; // of one take: 22 minutes of mono at 24 kHz
const OPEN_MS = 10_000; // a busy machine takes seconds

/**
 * Resolves with an object of `add(take, samples)`, `list()`, `samples(id)` and `clear()`, all of
 * which return promises, and `kept`: whether takes outlast the page.
 * @param {URL} apiBase every server has takes of its own
 */
export async function openTakes(apiBase) {
  try {
    return new KeptTakes(await opened(`cantata ${apiBase.href}`));
  } catch {
    return new PassingTakes(); // the browser offers no IndexedDB, or not to this page
  }
}

/** Whether a sound is short enough to be kept. */
export function canKeep(samples) {
  return samples.byteLength <= MAX_BYTES;
}

class KeptTakes {
  kept = true;
  #database;

  constructor(database) {
    this.#database = database;
  }

  async add(take, samples) {
    const [takes, sounds, done] = this.#open("readwrite");
    const id = await answer(takes.add(take));
    sounds.add(samples, id);
    const ids = await answer(takes.getAllKeys());
    for (const old of ids.slice(0, -MAX_TAKES)) {
      takes.delete(old);
      sounds.delete(old);
    }
    await done;
  }

  async list() {
    const [takes] = this.#open("readonly");
    return (await answer(takes.getAll())).reverse();
  }

  async samples(id) {
    const [, sounds] = this.#open("readonly");
    return answer(sounds.get(id));
  }

  async clear() {
    const [takes, sounds, done] = this.#open("readwrite");
    takes.clear();
    sounds.clear();
    await done;
  }

  #open(mode) {
    const transaction = this.#database.transaction(["takes", "sounds"], mode);
    const done = new Promise((resolve, reject) => {
      transaction.addEventListener("complete", resolve);
      transaction.addEventListener("abort", () => reject(transaction.error));
    });
    done.catch(() => {}); // whoever waits for it hears of it
    return [transaction.objectStore("takes"), transaction.objectStore("sounds"), done];
  }
}

class PassingTakes {
  kept = false;
  #takes = []; // {take, samples}, oldest first
  #added = 0;

  async add(take, samples) {
    this.#added += 1;
    this.#takes = [...this.#takes, { take: { ...take, id: this.#added }, samples }];
    this.#takes = this.#takes.slice(-MAX_TAKES);
  }

  async list() {
    return this.#takes.map(({ take }) => take).reverse();
  }

  async samples(id) {
    return this.#takes.find(({ take }) => take.id === id)?.samples;
  }

  async clear() {
    this.#takes = [];
  }
}

async function opened(name) {
  const request = indexedDB.open(name, 1);
  request.addEventListener("upgradeneeded", () => {
    request.result.createObjectStore("takes", { keyPath: "id", autoIncrement: true });
    request.result.createObjectStore("sounds");
  });
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error("IndexedDB does not open")), OPEN_MS);
  });
  return Promise.race([answer(request), late]);
}

function answer(request) {
  return new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => reject(request.error));
  });
}
