// The HTTP side: is the server ready, and which voices has it?

const RETRY_MS = 1_000;

/** Resolves once the server can speak. `tell` is given a sentence for each state on the way. */
export async function waitUntilReady(apiBase, tell) {
  for (;;) {
    try {
      const response = await fetch(new URL("ready", apiBase));
      if (response.ok) return;
      tell("The server is warming up");
    } catch {
      tell("The server does not answer");
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Fills the menu, keeps `about` in step with it, and resolves with the number of voices. */
export async function loadVoices(apiBase, menu, about) {
  const response = await fetch(new URL("v1/audio/voices", apiBase));
  if (!response.ok) throw new Error(`The server would not list its voices (${response.status}).`);
  const { voices } = await response.json();
  menu.replaceChildren(...voices.map(option));
  const describe = () => {
    about.textContent = menu.selectedOptions[0]?.dataset.description ?? "";
  };
  menu.addEventListener("change", describe);
  describe();
  return voices.length;
}

/** The voice and model of the menu's choice, or nothing, which lets the server choose. */
export function pickedVoice(menu) {
  const picked = menu.selectedOptions[0];
  if (picked === undefined) return {};
  const { model } = picked.dataset;
  return model === "" ? { voice: picked.value } : { voice: picked.value, model };
}

function option(voice) {
  const element = document.createElement("option");
  element.value = voice.id;
  element.textContent = voice.name || voice.id;
  element.dataset.model = voice.model ?? "";
  element.dataset.description = voice.description ?? "";
  return element;
}
