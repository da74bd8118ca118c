// Addresses in documents.

/** The address that a link of a document may open: absolute, and of a kind that only shows or writes to something. */
export function safeAddress(address: string): string | undefined {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return undefined;
  }
  return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
}
