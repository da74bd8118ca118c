// Server-sent events of a request that is not a GET.
import { send } from "./client";

export interface ServerEvent {
  event: string;
  data: unknown;
}

/** The events of a response, as they arrive. */
export async function* postStream(path: string, body: unknown, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const response = await send("post", path, { body, signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = parse(block);
      if (event) yield event;
    }
  }
}

/** An event; nothing for a comment, which keeps the connection alive. */
function parse(block: string): ServerEvent | undefined {
  let event = "message";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data += line.slice(5).trim();
  }
  return data === "" ? undefined : { event, data: JSON.parse(data) as unknown };
}
