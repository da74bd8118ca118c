// The fields of a space that can be changed.
import type { Space } from "../../api/types";
import { t } from "../../i18n";
import { Select, TextArea, TextField } from "../../ui/controls";

export type SpaceFacts = Pick<Space, "title" | "description" | "read" | "write">;

/** What a space is unless one says otherwise. */
export function newSpace(): SpaceFacts {
  return { title: "", description: "", read: "members", write: "members" };
}

/** What is different in `facts`. Who reads and who writes go together: the server refuses some pairs. */
export function changesOf(space: SpaceFacts, facts: SpaceFacts): Partial<SpaceFacts> {
  const { title, description, read, write } = facts;
  return {
    ...(title !== space.title && { title }),
    ...(description !== space.description && { description }),
    ...((read !== space.read || write !== space.write) && { read, write }),
  };
}

export function SpaceFields({ facts, onChange }: { facts: SpaceFacts; onChange: (facts: SpaceFacts) => void }) {
  const change = (change: Partial<SpaceFacts>) => onChange({ ...facts, ...change });
  const mayAllWrite = facts.read === "everyone";
  const writes: Space["write"][] = mayAllWrite ? ["members", "accounts"] : ["members"];
  return (
    <>
      <TextField label={t("common.title")} value={facts.title} maxLength={200} onInput={(title) => change({ title })} />
      <TextArea
        label={t("common.description")}
        rows={3}
        value={facts.description}
        maxLength={2000}
        onInput={(description) => change({ description })}
      />
      <div class="fields">
        <Select
          label={t("spaces.read")}
          value={facts.read}
          choices={(["members", "everyone"] as const).map((value) => ({ value, label: t(`space_read.${value}`) }))}
          onChange={(read) => change(read === "everyone" ? { read } : { read: "members", write: "members" })}
        />
        <Select
          label={t("spaces.write")}
          value={facts.write}
          hint={!mayAllWrite && t("spaces.write_hint")}
          choices={writes.map((value) => ({ value, label: t(`space_write.${value}`) }))}
          onChange={(write) => change({ write: write as Space["write"] })}
        />
      </div>
    </>
  );
}
