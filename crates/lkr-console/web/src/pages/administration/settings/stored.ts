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
  return { values: data, etag: response.headers.get("ETag") ?? "" };
}
