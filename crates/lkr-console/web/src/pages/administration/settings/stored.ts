// The settings as the server has them.
import { send } from "../../../api/client";
import type { Values } from "./draft";

/** The settings with the tag that an update must name. */
export interface Stored {
  values: Values;
  etag: string;
}

export async function loadSettings(signal: AbortSignal): Promise<Stored> {
  return storedOf(await send("get", "/api/v1/settings", { signal }));
}

/** The settings of a response. */
export async function storedOf(response: Response): Promise<Stored> {
  const { data } = (await response.json()) as { data: Values };
  return { values: data, etag: sentTag(response.headers.get("ETag") ?? "") };
}

/**
 * The tag as the server sent it. A proxy that compresses responses marks it as weak (nginx), or names the compression in it
 * (Caddy, Apache). The server would take such a tag for an old one.
 */
export function sentTag(received: string): string {
  return received.replace(/^W\//, "").replace(/-(?:gzip|br|zstd|deflate)"$/, '"');
}
