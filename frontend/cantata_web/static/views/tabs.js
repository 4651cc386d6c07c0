// Tabs as the ARIA practices describe them: one of them is in the focus order, arrows go between.

/** `shown(name)` is called with the panel's name whenever it changes. */
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
    shown(nameOf(chosen));
  };

  const step = (event) => {
    const last = tabs.length - 1;
    const at = tabs.indexOf(event.currentTarget);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = tabs.at(to % tabs.length);
    tab.focus();
    choose(tab);
  };

  for (const tab of tabs) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", step);
  }
  const show = (name) => choose(tabs.find((tab) => nameOf(tab) === name));
  show("speak");
  return { show };
}
