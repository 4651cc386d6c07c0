// Files that are dropped beside the boxes that take them.

/** Without this, a browser opens them, maybe in the page's place. The pointer says so meanwhile. */
export function refuseStrays(page) {
  for (const kind of ["dragover", "drop"]) {
    page.addEventListener(kind, (event) => {
      const { dataTransfer, defaultPrevented, target } = event;
      if (defaultPrevented || !dataTransfer?.types.includes("Files")) return;
      if (target instanceof HTMLInputElement && target.type === "file") return;
      event.preventDefault();
      dataTransfer.dropEffect = "none";
    });
  }
}

/** `take` is given the first thing of each drop on an element: {file, isFolder}. */
export function takeDrops(element, take) {
  for (const kind of ["dragover", "drop"]) {
    element.addEventListener(kind, (event) => {
      const { dataTransfer, target } = event;
      if (!dataTransfer?.types.includes("Files")) return;
      if (kind === "dragover" && target.type === "file") return;
      event.preventDefault();
      event.stopPropagation(); // a box inside of another takes its own
      if (kind === "dragover") return;
      take(firstOf(dataTransfer));
    });
  }
}

/** The first thing of a drop, while its event lasts: the browser forgets the items afterwards. */
export function firstOf({ items, files }) {
  return { file: files[0], isFolder: Boolean(items[0]?.webkitGetAsEntry?.()?.isDirectory) };
}
