// Settings while they are edited: values by their path, and what differs from what is stored.

/** The part of JSON Schema that the settings use. */
export interface Schema {
  description?: string;
  type?: string | string[];
  enum?: (string | null)[];
  properties?: Record<string, Schema>;
  items?: Schema;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
}

/** A setting, or a part of the settings that has more below it. */
export type Value = string | number | null | string[] | Values;

export interface Values {
  [key: string]: Value;
}

/** What the server shows in place of a stored key; writing it back keeps the key. */
export const KEY_MASK = "********";

export function isValues(value: Value | undefined): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function valueAt(values: Values, path: readonly string[]): Value | undefined {
  return path.reduce<Value | undefined>((value, key) => (isValues(value) ? value[key] : undefined), values);
}

/** The values with another one at a path. */
export function withValue(values: Values, [key = "", ...rest]: readonly string[], value: Value): Values {
  const below = values[key];
  return { ...values, [key]: rest.length === 0 ? value : withValue(isValues(below) ? below : {}, rest, value) };
}

/** What is different in `draft`, and nothing else. */
export function changesOf(stored: Values, draft: Values): Values {
  const changes: Values = {};
  for (const [key, value] of Object.entries(draft)) {
    const before = stored[key];
    if (isValues(value)) {
      const below = changesOf(isValues(before) ? before : {}, value);
      if (Object.keys(below).length > 0) changes[key] = below;
    } else if (JSON.stringify(value) !== JSON.stringify(before)) {
      changes[key] = value;
    }
  }
  return changes;
}

export function countOf(changes: Values): number {
  return Object.values(changes).reduce<number>((sum, value) => sum + (isValues(value) ? countOf(value) : 1), 0);
}

/** The values as the API takes them: it writes a provider that is not there as `none`, because null keeps what is stored. */
export function forApi(values: Values): Values {
  const sent: Values = {};
  for (const [key, value] of Object.entries(values)) {
    if (isValues(value)) sent[key] = forApi(value);
    else sent[key] = key === "provider" && value === null ? "none" : value;
  }
  return sent;
}
