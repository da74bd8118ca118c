// How large a page is shown.
import { useEffect, useState } from "preact/hooks";
import { t } from "../../i18n";

const LEVELS = ["fit", "100", "150"] as const;

export type Level = (typeof LEVELS)[number];

/** A point of a page is 1/72 of an inch, a pixel of style sheets 1/96. */
const PIXELS_OF_A_POINT = 96 / 72;

export interface Zoom {
  level: Level;
  setLevel: (level: Level) => void;
  /** The width of the page, in pixels of style sheets. */
  width: number;
}

/** The level of zoom, which the keys + and − turn to the next larger and smaller one. */
export function useZoom(fit: number, points: number | undefined): Zoom {
  const [level, setLevel] = useState<Level>("fit");
  const widthOf = (level: Level) =>
    level === "fit" || points === undefined ? fit : Math.round((points * PIXELS_OF_A_POINT * Number(level)) / 100);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const isLarger = event.key === "+" || event.key === "=";
      if (!isLarger && event.key !== "-") return;
      const sorted = [...LEVELS].sort((a, b) => widthOf(a) - widthOf(b));
      const larger = (than: Level) => sorted.find((level) => widthOf(level) > widthOf(than));
      const smaller = (than: Level) => sorted.findLast((level) => widthOf(level) < widthOf(than));
      setLevel((level) => (isLarger ? larger(level) : smaller(level)) ?? level);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [fit, points]);
  return { level, setLevel, width: widthOf(level) };
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, dialog *");
}

export function ZoomControl({ zoom }: { zoom: Zoom }) {
  return (
    <select
      class="zoom"
      aria-label={t("document.zoom")}
      title={t("document.zoom_hint")}
      value={zoom.level}
      onChange={(event) => zoom.setLevel(event.currentTarget.value as Level)}
    >
      {LEVELS.map((level) => (
        <option key={level} value={level}>{level === "fit" ? t("document.zoom_fit") : `${level} %`}</option>
      ))}
    </select>
  );
}
