// Copying texts.

/** Copies a text, and tells whether that was possible. `beside` is what the person clicked. */
export async function copyText(text: string, beside: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page without TLS has no clipboard, and a person may forbid it: then a selection can be copied.
    return copySelection(text, beside);
  }
}

function copySelection(text: string, beside: HTMLElement): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true;
  area.className = "visually-hidden";
  // In an open dialog, what is outside of it cannot be selected.
  beside.after(area);
  area.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    area.remove();
    beside.focus();
  }
}
