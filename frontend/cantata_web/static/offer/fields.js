// A request's fields of a model's own, from their JSON Schemas: which control each needs, and what
// its text means. No DOM here.

const LEFT_OPEN = "The model's choice";

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
    return { problem: `${label} must be JSON${example === null ? "" : `, as ${example}`}.` };
  }
  const fits = choices !== null || !isNumber(schema) || isWithin(value, schema);
  return fits ? { value } : { problem: `${label} must be ${rangeOf(schema)}.` };
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
  const bounds = [
    ["at least", schema.minimum],
    ["above", schema.exclusiveMinimum],
    ["at most", schema.maximum],
    ["below", schema.exclusiveMaximum],
  ];
  const known = bounds.filter(([, bound]) => bound !== undefined).map((bound) => bound.join(" "));
  return [schema.type === "integer" ? "a whole number" : "a number", known.join(" and ")]
    .filter((part) => part !== "")
    .join(", ");
}

function exampleOf({ type, prefixItems: items }) {
  if (type !== "array" || items === undefined) return null;
  const [least, most] = [items[0].minimum ?? 0, items.at(-1).maximum ?? 1];
  return JSON.stringify(items.map((_, place) => (place === items.length - 1 ? most : least)));
}

function shown(value) {
  if (typeof value === "boolean") return value ? "Yes" : "No";
  return typeof value === "string" ? value : JSON.stringify(value);
}
