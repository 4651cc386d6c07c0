/** Resolves once the page is not in a hidden tab or window. */
export function untilVisible() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const changed = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", changed);
      resolve();
    };
    document.addEventListener("visibilitychange", changed);
  });
}
