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
      if (kind === "dragover") return;
      // Only now: the browser forgets the items when the event is over.
      const isFolder = Boolean(dataTransfer.items[0]?.webkitGetAsEntry?.()?.isDirectory);
      take({ file: dataTransfer.files[0], isFolder });
    });
  }
}
