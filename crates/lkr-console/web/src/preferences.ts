// The person's language and theme. They are cookies, so that the server can answer a page in the chosen theme.
import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
export type Language = "en" | "zh";

const YEAR_SECONDS = 365 * 24 * 60 * 60;

export const theme = signal<Theme>(oneOf(cookie("lkr_theme"), ["auto", "light", "dark"]) ?? "auto");

export const language = signal<Language>(
  oneOf(cookie("lkr_language"), ["en", "zh"]) ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en"),
);

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});

effect(() => {
  document.documentElement.lang = language.value === "zh" ? "zh-CN" : "en";
});

export function setTheme(value: Theme): void {
  theme.value = value;
  keep("lkr_theme", value);
}

export function setLanguage(value: Language): void {
  language.value = value;
  keep("lkr_language", value);
}

function keep(name: string, value: string): void {
  document.cookie = `${name}=${value}; Path=/; SameSite=Strict; Max-Age=${YEAR_SECONDS}`;
}

function cookie(name: string): string | undefined {
  const pairs = document.cookie.split("; ").map((pair) => pair.split("="));
  return pairs.find(([key]) => key === name)?.[1];
}

function oneOf<T extends string>(value: string | undefined, choices: readonly T[]): T | undefined {
  return choices.find((choice) => choice === value);
}
