// How a space is shown where only its name is known.
import { useEffect } from "preact/hooks";
import { knownSpaces, spaceTitles } from "../known";
import { spaceHref } from "../routes";
import { isolated } from "../text";
import type { Space } from "../api/types";
import type { Choice } from "./controls";

/** The title of a space, with its name as a tooltip; its name if it has no title. */
export function SpaceTitle({ name }: { name: string }) {
  useEffect(knownSpaces.need, []);
  const title = spaceTitles.value.get(name);
  return <bdi {...(title !== undefined && { title: name })}>{title ?? name}</bdi>;
}

export function SpaceBadge({ name }: { name: string }) {
  return <a href={spaceHref(name)} class="badge"><SpaceTitle name={name} /></a>;
}

/** A space where only a text can be shown: its title and its name. */
export function spaceLabel({ space, title }: Pick<Space, "space" | "title">): string {
  return title === "" ? space : `${isolated(title)} (${space})`;
}

export function spaceChoices(spaces: readonly Pick<Space, "space" | "title">[]): Choice[] {
  return spaces.map((space) => ({ value: space.space, label: spaceLabel(space) }));
}
