// Making elements.

export function element(name, text = "") {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

/** Text of people and models: right to left, if its script is. */
export function paragraph(text = "", name = "p") {
  const made = element(name, text);
  made.dir = "auto";
  return made;
}

/** Opens what folds an element away. */
export function unfold(folded) {
  const box = folded.closest("details");
  if (box !== null) box.open = true;
}

/** @param {string} label its name for screen readers, where the text alone says too little */
export function button(text, label, act) {
  const made = element("button", text);
  made.type = "button";
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}
