// Menus of microphones and loudspeakers, which follow what is connected.

import { t } from "../texts.js";
import { fillMenu } from "./choices.js";

const SYSTEM = { value: "", label: t("the system's") };

/** Dispatches "microphone" and "loudspeaker" (detail: a device's id) when another one is chosen. */
export class Devices extends EventTarget {
  #menus;
  #store;

  /** @param {{audioinput: HTMLSelectElement, audiooutput: HTMLSelectElement}} menus */
  constructor(menus, store) {
    super();
    this.#menus = menus;
    this.#store = store;
    const events = { audioinput: "microphone", audiooutput: "loudspeaker" };
    for (const [kind, name] of Object.entries(events)) {
      menus[kind].addEventListener("change", () => {
        store.set(kind, menus[kind].value);
        this.dispatchEvent(new CustomEvent(name, { detail: menus[kind].value }));
      });
    }
    navigator.mediaDevices?.addEventListener("devicechange", () => void this.refresh());
  }

  /** Browsers name the devices only once the microphone was allowed. Resolves when they are shown. */
  async refresh() {
    const found = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
    for (const [kind, menu] of Object.entries(this.#menus)) {
      const named = found.filter((one) => one.kind === kind && one.label !== "");
      const own = named.filter(({ deviceId }) => deviceId !== "default");
      const entries = own.map(({ deviceId: value, label }) => ({ value, label }));
      fillMenu(menu, [SYSTEM, ...entries], [this.#store.get(kind, ""), ""]);
    }
  }

  get microphone() {
    return this.#menus.audioinput.value;
  }

  get loudspeaker() {
    return this.#menus.audiooutput.value;
  }
}
