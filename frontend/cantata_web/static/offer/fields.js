// A request's fields of a model's own, from their JSON Schemas: which control each needs, and what
// its text means. No DOM here.

import { listed, t } from "../texts.js";

const LEFT_OPEN = t("The model's choice");

/**
 * @typedef {{name, label, about, choices: {value, label}[] | null, number: object | null,
 *   hint: string}} Field
 *   `choices` to choose from, of which the first leaves the field out; or a `number`, with `min`,
 *   `max` and `step` as an <input> has them; else a text. `hint` says what an empty one means.
 */

/** @returns {Field} */
export function fieldOf(name, schema) {
  const words = name.replaceAll("_", " ");
  const label = words.charAt(0).toUpperCase() + words.slice(1);
  const choices = choicesOf(schema);
  return {
    name,
    label,
    about: schema.description ?? "",
    choices,
    number: choices === null && isNumber(schema) ? limitsOf(schema) : null,
    hint: schema.default === undefined ? LEFT_OPEN : shown(schema.default),
  };
}

/**
 * What was entered, as JSON means it.
 * @param {string} text of the control; not empty
 * @returns {{value} | {problem: string}} the problem as a sentence
 */
export function valueOf(name, schema, text) {
  const { label, choices } = fieldOf(name, schema);
  if (schema.type === "string") return { value: text };
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    const example = exampleOf(schema);
    const problem = example === null
      ? t("{label} must be JSON.", { label })
      : t("{label} must be JSON, as {example}.", { label, example });
    return { problem };
  }
  const fits = choices !== null || !isNumber(schema) || isWithin(value, schema);
  if (fits) return { value };
  return { problem: t("{label} must be {range}.", { label, range: rangeOf(schema) }) };
}

/** The text that stands for a value in its control. */
export function textOf(schema, value) {
  return schema.type === "string" ? value : JSON.stringify(value);
}

// The default, if there is one, is the choice that leaves the field out.
function choicesOf(schema) {
  const only = schema.const === undefined ? undefined : [schema.const];
  const values = schema.type === "boolean" ? [false, true] : (schema.enum ?? only);
  if (values === undefined) return null;
  const others = values.filter((value) => value !== schema.default);
  const first = schema.default === undefined ? LEFT_OPEN : shown(schema.default);
  return [
    { value: "", label: first },
    ...others.map((value) => ({ value: textOf(schema, value), label: shown(value) })),
  ];
}

function isNumber({ type }) {
  return type === "number" || type === "integer";
}

function limitsOf(schema) {
  const limits = { step: schema.type === "integer" ? "1" : "any" };
  const least = schema.minimum ?? schema.exclusiveMinimum;
  const most = schema.maximum ?? schema.exclusiveMaximum;
  if (least !== undefined) limits.min = String(least);
  if (most !== undefined) limits.max = String(most);
  return limits;
}

function isWithin(value, schema) {
  if (typeof value !== "number" || (schema.type === "integer" && !Number.isInteger(value))) {
    return false;
  }
  const { minimum = -Infinity, maximum = Infinity } = schema;
  const { exclusiveMinimum: above = -Infinity, exclusiveMaximum: below = Infinity } = schema;
  return minimum <= value && value <= maximum && above < value && value < below;
}

function rangeOf(schema) {
  const { minimum, exclusiveMinimum: above, maximum, exclusiveMaximum: below } = schema;
  const bounds = [
    [minimum, t("at least {bound}", { bound: minimum })],
    [above, t("above {bound}", { bound: above })],
    [maximum, t("at most {bound}", { bound: maximum })],
    [below, t("below {bound}", { bound: below })],
  ];
  const known = bounds.filter(([bound]) => bound !== undefined).map(([, words]) => words);
  return [schema.type === "integer" ? t("a whole number") : t("a number"), listed(known)]
    .filter((part) => part !== "")
    .join(", ");
}

function exampleOf({ type, prefixItems: items }) {
  if (type !== "array" || items === undefined) return null;
  const [least, most] = [items[0].minimum ?? 0, items.at(-1).maximum ?? 1];
  return JSON.stringify(items.map((_, place) => (place === items.length - 1 ? most : least)));
}

function shown(value) {
  if (typeof value === "boolean") return value ? t("Yes") : t("No");
  return typeof value === "string" ? value : JSON.stringify(value);
}
