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
    // Who comes from the foot of a long tab sees the head of this one.
    chosen.scrollIntoView({ block: "nearest" });
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
    arrange();
  };
  const arrange = () => fitRows(root.querySelector("[role='tablist']"), offered());
  addEventListener("resize", arrange);
  show("speak");
  arrange();
  return { show, offer };
}

// Sets them in one row, or in as few even rows as hold their labels.
function fitRows(list, tabs) {
  for (let rows = 1; rows <= tabs.length; rows += 1) {
    setRows(list, tabs, rows);
    if (list.scrollWidth <= list.clientWidth) return;
  }
}

// A grid of parts that both the longer and the shorter rows fill.
function setRows(list, tabs, rows) {
  const most = Math.ceil(tabs.length / rows);
  const parts = most * Math.max(1, most - 1);
  const inLonger = most * (tabs.length - rows * (most - 1));
  list.toggleAttribute("data-stacked", rows > 1);
  list.style.setProperty("--parts", String(parts));
  tabs.forEach((tab, i) => {
    tab.style.gridColumn = `span ${parts / (i < inLonger ? most : most - 1)}`;
  });
}
