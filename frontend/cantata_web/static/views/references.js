// The pictures that are to be edited: chosen, dropped, or drawn before.

import { t } from "../texts.js";
import { button, element } from "./elements.js";

/** Dispatches "refused" (detail: a sentence) for what cannot be taken. */
export class References extends EventTarget {
  #box;
  #field;
  #list;
  #label;
  #limits = null;
  #chosen = []; // {file, entry, url}

  constructor(root) {
    super();
    this.#box = root.querySelector("[data-role='drop']");
    this.#field = this.#box.querySelector("input");
    this.#label = this.#box.querySelector("label");
    this.#list = this.#box.querySelector("ul");
    this.#field.addEventListener("change", () => {
      this.#addAll(this.#field.files);
      this.#field.value = "";
    });
    this.#takeDropped(root);
  }

  // The whole tab takes them; the box shows it, where the model edits.
  #takeDropped(root) {
    for (const kind of ["dragover", "drop"]) {
      root.addEventListener(kind, (event) => {
        if (this.#limits === null || !event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        if (kind === "dragover") {
          this.#box.dataset.over = "true";
          return;
        }
        this.#leave();
        this.#addAll(event.dataTransfer.files);
      });
    }
    root.addEventListener("dragleave", ({ relatedTarget }) => {
      if (!root.contains(relatedTarget)) this.#leave();
    });
  }

  /** Takes as many as a model of these limits does. */
  offer(limits) {
    this.#limits = limits;
    const { min_references: least, max_references: most } = limits;
    this.#box.hidden = most === 0;
    this.#field.multiple = most > 1;
    this.#label.textContent = least === 0
      ? t({
          one: "A picture to edit, if you like: drop here, or choose",
          other: "Up to {count} pictures to edit, if you like: drop here, or choose",
        }, { count: most })
      : t({
          one: "A picture to edit: drop here, or choose",
          other: "Up to {count} pictures to edit: drop here, or choose",
        }, { count: most });
    for (const { entry } of this.#chosen.slice(Math.max(most, 1))) this.#remove(entry);
  }

  /** Blobs, in the order in which they came; none if the model takes none. */
  get files() {
    return this.#box.hidden ? [] : this.#chosen.map(({ file }) => file);
  }

  /** As many as fit replace nothing; one more replaces the last. */
  add(file, name) {
    const most = this.#limits.max_references;
    if (this.#chosen.length >= most) this.#remove(this.#chosen.at(-1).entry);
    const entry = element("li");
    const url = URL.createObjectURL(file);
    const picture = document.createElement("img");
    picture.src = url;
    picture.alt = name;
    picture.addEventListener("error", () => {
      this.#remove(entry);
      this.#refuse(t("“{name}” is not a picture that this browser can read.", { name }));
    });
    const remove = button(t("Remove"), t("Do not edit {name}", { name }), () => {
      this.#remove(entry);
      this.#field.focus();
    });
    entry.append(picture, remove);
    this.#list.append(entry);
    this.#chosen.push({ file, entry, url });
  }

  focus() {
    this.#field.focus();
  }

  #addAll(files) {
    const most = this.#limits.max_references;
    if (most === 0) {
      this.#refuse(t("This model edits no pictures."));
      return;
    }
    for (const file of [...files].slice(0, most)) this.add(file, file.name);
    if (files.length <= most) return;
    this.#refuse(
      t({
        one: "This model edits up to {count} picture.",
        other: "This model edits up to {count} pictures.",
      }, { count: most }),
    );
  }

  #remove(entry) {
    const gone = this.#chosen.find((one) => one.entry === entry);
    if (gone === undefined) return;
    URL.revokeObjectURL(gone.url);
    entry.remove();
    this.#chosen = this.#chosen.filter((one) => one !== gone);
  }

  #refuse(sentence) {
    this.dispatchEvent(new CustomEvent("refused", { detail: sentence }));
  }

  #leave() {
    delete this.#box.dataset.over;
  }
}
