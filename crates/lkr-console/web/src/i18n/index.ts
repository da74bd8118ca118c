// Messages in the person's language. English is in the bundle; others are loaded when they are chosen.
import { computed, effect, signal } from "@preact/signals";
import { language, type Language } from "../preferences";
import { en } from "./en";

export type MessageKey = keyof typeof en;
export type Messages = Record<MessageKey, string>;
type Values = Record<string, string | number>;

const loaded = signal<Partial<Record<Language, Messages>>>({ en });

effect(() => {
  if (language.value === "zh" && loaded.peek().zh === undefined) {
    void import("./zh").then(({ zh }) => (loaded.value = { ...loaded.peek(), zh }));
  }
});

const messages = computed<Messages>(() => loaded.value[language.value] ?? en);

/** The locale of numbers, dates and plurals. */
export const locale = computed(() => (language.value === "zh" ? "zh-CN" : "en"));

const plurals = computed(() => new Intl.PluralRules(locale.value));
const numbers = computed(() => new Intl.NumberFormat(locale.value));

/**
 * The message of a key. `{name}` is replaced by the value of that name. A message with forms, `one|other`, takes the form
 * of the value `n`.
 */
export function t(key: MessageKey, values?: Values): string {
  return fill(form(messages.value[key], values), values);
}

/** The message of a key that data decides, or the data itself where no message is known. */
export function tData(prefix: string, value: string): string {
  const key = `${prefix}.${value}`;
  return key in en ? t(key as MessageKey) : value;
}

/** The parts of a message around its values, for values that are elements. */
export function tParts(key: MessageKey): string[] {
  return messages.value[key].split(/(\{\w+\})/).filter((part) => part !== "");
}

export function number(value: number): string {
  return numbers.value.format(value);
}

function form(message: string, values: Values | undefined): string {
  if (!message.includes("|") || typeof values?.["n"] !== "number") return message;
  const [one = "", other = one] = message.split("|");
  return plurals.value.select(values["n"]) === "one" ? one : other;
}

function fill(message: string, values: Values | undefined): string {
  if (values === undefined) return message;
  return message.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    return typeof value === "number" ? number(value) : (value ?? whole);
  });
}
