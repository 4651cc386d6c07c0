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
