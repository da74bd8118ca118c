// Whether the service is ready, and why not.
import { ApiError, errorFrom } from "../../../api/client";
import type { Readiness } from "../../../api/types";

/** The readiness, also of a service that is not ready: that response has the status 503 and data all the same. */
export async function loadReadiness(signal: AbortSignal): Promise<Readiness> {
  const response = await fetch("/readyz", { signal }).catch(() => {
    throw new ApiError("", 0, 0, "", null);
  });
  const body = (await response.json().catch(() => null)) as { data: Readiness | null } | null;
  if (body?.data) return body.data;
  throw errorFrom(response.status, null, response.headers.get("Retry-After"));
}
