// Tabs as the ARIA practices describe them: one of them is in the focus order, arrows go between.

/**
 * `shown(name)` is called with the panel's name whenever it changes.
 * @returns {{show(name), offer(name, offered)}} a tab that is not offered is not there; if it was
 *   chosen, the first one that is offered becomes so
 */
export function startTabs(root, shown) {
  const tabs = [...root.querySelectorAll("[role='tab']")];
  const nameOf = (tab) => tab.id.replace("cantata-tab-", "");

  const choose = (chosen) => {
    for (const tab of tabs) {
      const selected = tab === chosen;
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
      root.querySelector(`#${tab.getAttribute("aria-controls")}`).hidden = !selected;
    }
    // On a phone the row of tabs scrolls.
    chosen.scrollIntoView({ block: "nearest", inline: "nearest" });
    shown(nameOf(chosen));
  };

  const offered = () => tabs.filter((tab) => !tab.hidden);

  const step = (event) => {
    const there = offered();
    const last = there.length - 1;
    const at = there.indexOf(event.currentTarget);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = there.at(to % there.length);
    tab.focus();
    choose(tab);
  };

  for (const tab of tabs) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", step);
  }
  const named = (name) => tabs.find((tab) => nameOf(tab) === name);
  const show = (name) => choose(named(name));
  const offer = (name, isOffered) => {
    const tab = named(name);
    tab.hidden = !isOffered;
    if (!isOffered && tab.getAttribute("aria-selected") === "true") choose(offered()[0]);
  };
  show("speak");
  return { show, offer };
}
