// Controls for the request fields of a model's own, made from their schemas.

import { fieldOf, textOf, valueOf } from "../offer/fields.js";
import { element, unfold } from "./elements.js";

export class OwnOptions {
  #box;
  #controls;
  #prefix;
  #schemas = {};
  #inputs = new Map(); // by field

  /** @param {HTMLElement} box is hidden while there are none */
  constructor(box) {
    this.#box = box;
    this.#controls = box.querySelector(".controls");
    this.#prefix = `${box.dataset.role}-`;
  }

  /** Makes the controls of these fields; what was entered stays where a field is the same. */
  offer(schemas) {
    if (JSON.stringify(schemas) === JSON.stringify(this.#schemas)) return;
    const before = this.values;
    this.#schemas = schemas;
    this.#inputs.clear();
    const made = Object.entries(schemas).map(([name, schema]) => this.#made(fieldOf(name, schema)));
    this.#controls.replaceChildren(...made);
    this.#box.hidden = made.length === 0;
    this.values = before;
  }

  /** The fields that are set and valid, by name. */
  get values() {
    const read = [...this.#inputs].map(([name, input]) => [name, this.#read(name, input)]);
    const valid = read.filter(([, found]) => "value" in found);
    return Object.fromEntries(valid.map(([name, { value }]) => [name, value]));
  }

  /** Sets these and unsets all others; those that the model has not are left out. */
  set values(values) {
    for (const [name, input] of this.#inputs) {
      input.value = name in values ? textOf(this.#schemas[name], values[name]) : "";
      if (input.selectedIndex === -1) input.value = ""; // the menu has no such choice
    }
  }

  /** The first field that is not valid, as {name, sentence}; null if all are. */
  get problem() {
    for (const [name, input] of this.#inputs) {
      const { problem } = this.#read(name, input);
      if (problem !== undefined) return { name, sentence: problem };
    }
    return null;
  }

  /** Goes to a field's control; returns whether there is one. */
  focus(name) {
    const input = this.#inputs.get(name);
    if (input === undefined) return false;
    unfold(input);
    input.focus();
    return true;
  }

  #read(name, input) {
    // What is no number at all reads as an empty text.
    if (input.validity.badInput) return valueOf(name, this.#schemas[name], "null");
    const text = input.value.trim();
    return text === "" ? {} : valueOf(name, this.#schemas[name], text);
  }

  #made(field) {
    const control = element("div");
    control.className = "control";
    const input = field.choices === null ? this.#entry(field) : this.#menu(field);
    input.id = `${this.#prefix}${field.name}`;
    this.#inputs.set(field.name, input);
    const label = element("label", field.label);
    label.htmlFor = input.id;
    control.append(label, input);
    if (field.about !== "") {
      const about = element("small", field.about);
      about.id = `${input.id}-about`;
      input.setAttribute("aria-describedby", about.id);
      control.append(about);
    }
    return control;
  }

  #menu({ choices }) {
    const menu = element("select");
    menu.append(...choices.map(({ value, label }) => new Option(label, value)));
    return menu;
  }

  #entry({ number, hint }) {
    const input = element("input");
    input.type = number === null ? "text" : "number";
    input.placeholder = hint;
    Object.assign(input, number);
    return input;
  }
}
