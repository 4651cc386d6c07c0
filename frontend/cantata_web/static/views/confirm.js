// Asking before something is deleted.

/**
 * Returns `ask({title, text, act})`: shows the dialog, whose button for doing it is named `act`, and
 * resolves with whether it was pressed. Escape and the other button decline.
 */
export function confirmDialog(dialog) {
  const part = (role) => dialog.querySelector(`[data-role="${role}"]`);
  return ({ title, text, act }) => {
    part("confirm-title").textContent = title;
    part("confirm-text").textContent = text;
    part("confirm-act").textContent = act;
    dialog.returnValue = "";
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "act"), { once: true });
      dialog.showModal();
    });
  };
}
