// How spaces, members and roles are named on the pages of the administration.
import { urlOf } from "../../api/client";
import type { Space, Stats } from "../../api/types";
import { t, tData } from "../../i18n";
import { spaceHref } from "../../routes";
import { Badge } from "../../ui/data";
import { TextField, type Choice } from "../../ui/controls";
import { spaceChoices } from "../../ui/space";

export type SpaceRole = NonNullable<Space["your_role"]>;

export const SPACE_ROLES: SpaceRole[] = ["reader", "writer", "manager"];

/** What a space or group may be called: the API's pattern. */
const NAME_PATTERN = "[a-z0-9][a-z0-9._\\-]*";

export function roleChoices(): Choice[] {
  return SPACE_ROLES.map((role) => ({ value: role, label: t(`space_role.${role}`) }));
}

export function SpaceRoleBadge({ role }: { role: Space["your_role"] }) {
  if (role === null) return <span class="muted">{t("common.none")}</span>;
  return <Badge kind={role === "manager" ? "accent" : "neutral"}>{t(`space_role.${role}`)}</Badge>;
}

/** The title of a space above its name, or its name alone. */
export function SpaceName({ space }: { space: Pick<Space, "space" | "title"> }) {
  const name = <bdi>{space.space}</bdi>;
  return (
    <>
      <a href={spaceHref(space.space)}>{space.title === "" ? name : <bdi>{space.title}</bdi>}</a>
      {space.title !== "" && <small class="under">{name}</small>}
    </>
  );
}

/** The parts of `user:alice` or `group:legal`. */
export function memberParts(member: string): { kind: string; name: string } {
  const at = member.indexOf(":");
  return { kind: member.slice(0, at), name: member.slice(at + 1) };
}

export function MemberName({ member }: { member: string }) {
  const { kind, name } = memberParts(member);
  return (
    <span class="row">
      <bdi>{name}</bdi>
      {kind === "group" && <Badge>{tData("member", kind)}</Badge>}
    </span>
  );
}

/** Under this name the statistics count the documents without a category, besides their own figure. */
const UNCATEGORIZED = "uncategorized";

/** How many documents each category has. */
export function categoryCounts(stats: Stats): { name: string; count: number }[] {
  return Object.entries(stats.categories)
    .filter(([name]) => name !== UNCATEGORIZED)
    .map(([name, count]) => ({ name, count }));
}

/** The documents of a category. */
export function categoryHref(category: string): string {
  return urlOf("/documents", { query: { category } });
}

/** The choices of one space or all of them. */
export function spaceOrAllChoices(spaces: readonly Space[] | undefined): Choice[] {
  return [{ value: "", label: t("spaces.all") }, ...spaceChoices(spaces ?? [])];
}

interface NameFieldProps {
  hint: string;
  value: string;
  onInput: (name: string) => void;
}

/** The name of a new space or group. */
export function NameField(props: NameFieldProps) {
  return (
    <TextField
      label={t("common.name")}
      required
      maxLength={64}
      pattern={NAME_PATTERN}
      autocapitalize="none"
      autocomplete="off"
      spellcheck={false}
      {...props}
    />
  );
}
