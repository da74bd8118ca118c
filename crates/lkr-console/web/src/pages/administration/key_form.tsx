// A new API key: what it may do, where, and how long.
import { useState } from "preact/hooks";
import { post } from "../../api/client";
import { t } from "../../i18n";
import { knownSpaces, useShared } from "../../known";
import { Checkbox, Select, TextField } from "../../ui/controls";
import { FormDialog } from "../../ui/form_dialog";
import { spaceLabel } from "../../ui/space";

const DAY_SECONDS = 86_400;
const LIFETIMES = ["never", "7", "30", "90", "365", "date"] as const;

type Lifetime = (typeof LIFETIMES)[number];

interface CreateProps {
  onDone: (secret: string) => void;
  onClose: () => void;
}

export function CreateKey({ onDone, onClose }: CreateProps) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<"read" | "write">("read");
  const [spaces, setSpaces] = useState<string[]>([]);
  const [lifetime, setLifetime] = useState<Lifetime>("90");
  const [date, setDate] = useState("");
  const create = async () => {
    const seconds = secondsOf(lifetime, date);
    const created = await post("/api/v1/auth/keys", {
      body: {
        name: name.trim(),
        scope,
        ...(spaces.length > 0 && { spaces }),
        ...(seconds !== undefined && { expires_in: seconds }),
      },
    });
    onDone(created.key);
  };
  return (
    <FormDialog title={t("keys.create")} submit={t("common.create")} onSubmit={create} onClose={onClose}>
      <TextField label={t("common.name")} hint={t("keys.name_hint")} value={name} onInput={setName} required maxLength={100} />
      <Select
        label={t("keys.scope")}
        hint={t(`key_scope_hint.${scope}`)}
        value={scope}
        choices={(["read", "write"] as const).map((value) => ({ value, label: t(`key_scope.${value}`) }))}
        onChange={(scope) => setScope(scope as "read" | "write")}
      />
      <Expiry lifetime={lifetime} date={date} onLifetime={setLifetime} onDate={setDate} />
      <SpaceChoice chosen={spaces} onChange={setSpaces} />
    </FormDialog>
  );
}

interface ExpiryProps {
  lifetime: Lifetime;
  date: string;
  onLifetime: (lifetime: Lifetime) => void;
  onDate: (date: string) => void;
}

function Expiry({ lifetime, date, onLifetime, onDate }: ExpiryProps) {
  const label = (value: Lifetime) => {
    if (value === "never") return t("common.never");
    return value === "date" ? t("keys.expires_date") : t("keys.expires_days", { n: Number(value) });
  };
  return (
    <div class="fields">
      <Select
        label={t("keys.expires")}
        value={lifetime}
        choices={LIFETIMES.map((value) => ({ value, label: label(value) }))}
        onChange={(value) => onLifetime(value as Lifetime)}
      />
      {lifetime === "date" && (
        <TextField label={t("keys.expires_on")} type="date" min={today()} value={date} onInput={onDate} required />
      )}
    </div>
  );
}

/** The date of today where the person is. */
function today(): string {
  const now = new Date();
  return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

/** The seconds until a key ends: after some days, or with the end of a day. */
function secondsOf(lifetime: Lifetime, date: string): number | undefined {
  if (lifetime === "never") return undefined;
  if (lifetime !== "date") return Number(lifetime) * DAY_SECONDS;
  return Math.ceil((Date.parse(`${date}T23:59:59`) - Date.now()) / 1000);
}

function SpaceChoice({ chosen, onChange }: { chosen: string[]; onChange: (chosen: string[]) => void }) {
  const spaces = useShared(knownSpaces);
  const toggle = (space: string, isChosen: boolean) =>
    onChange(isChosen ? [...chosen, space] : chosen.filter((name) => name !== space));
  return (
    <fieldset>
      <legend>{t("keys.spaces")}</legend>
      <p class="hint">{t("keys.spaces_hint")}</p>
      <div class="choice-list">
        {spaces.data?.map(({ space, title }) => (
          <Checkbox
            key={space}
            label={spaceLabel({ space, title })}
            checked={chosen.includes(space)}
            onChange={(isChosen) => toggle(space, isChosen)}
          />
        ))}
      </div>
    </fieldset>
  );
}
