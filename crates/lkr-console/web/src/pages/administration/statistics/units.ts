// Figures as the statistics show them.
import { t } from "../../../i18n";
import { duration } from "../../../i18n/format";

/** A short time with the digits that matter below ten milliseconds. */
export function milliseconds(ms: number): string {
  return ms < 10 ? t("statistics.ms", { ms: Number(ms.toPrecision(2)) }) : duration(ms);
}

export function percent(share: number): string {
  return t("statistics.percent", { share: Math.round(100 * share) });
}
