// A line of status for eyes and screen readers.

/** Returns `show(sentence, isError)`. A sentence that stands there already is not said again. */
export function statusLine(element) {
  return (sentence, isError = false) => {
    if (element.textContent !== sentence) element.textContent = sentence;
    element.dataset.error = String(isError);
  };
}
