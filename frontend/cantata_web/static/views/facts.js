// Terms and what they mean.

import { element } from "./elements.js";

/**
 * @param {HTMLElement} list a <dl>
 * @param {[string, string][]} facts
 */
export function showFacts(list, facts) {
  list.replaceChildren(...facts.flatMap(([term, what]) => [element("dt", term), element("dd", what)]));
}
