// What a search is narrowed to.
import { t } from "../../i18n";
import { knownCategories, knownSpaces, useShared } from "../../known";
import { Button, Checkbox, Select, TextField, withChosen } from "../../ui/controls";
import { ConditionRows } from "./condition_rows";
import { EMPTY, filterCount, type SearchState } from "./state";

interface FiltersProps {
  state: SearchState;
  onChange: (change: Partial<SearchState>) => void;
}

export function Filters({ state, onChange }: FiltersProps) {
  const spaces = useShared(knownSpaces);
  const categories = useShared(knownCategories);
  const names = (categories.data ?? []).map(({ name }) => ({ value: name, label: name }));
  const category = withChosen([{ value: "", label: t("common.all") }, ...names], state.category);
  const hasFilters = filterCount(state) > 0 || state.conditions.length > 0 || state.isGrouped || state.isFlat;
  return (
    <div class="filters card" id="filters">
      <div class="fields">
        <Select label={t("search.filter.category")} value={state.category} choices={category} onChange={(category) => onChange({ category })} />
        <TextField label={t("search.filter.source")} placeholder={t("search.filter.source_hint")} value={state.source} onInput={(source) => onChange({ source })} />
        <TextField label={t("search.filter.language")} placeholder={t("search.filter.language_hint")} value={state.language} maxLength={8} onInput={(language) => onChange({ language })} />
        <TextField label={t("search.filter.from")} type="date" value={state.from} onInput={(from) => onChange({ from })} />
        <TextField label={t("search.filter.to")} type="date" value={state.to} onInput={(to) => onChange({ to })} />
      </div>
      <ConditionRows conditions={state.conditions} onChange={(conditions) => onChange({ conditions })} />
      {(spaces.data?.length ?? 0) > 1 && (
        <fieldset>
          <legend>{t("search.filter.spaces")}</legend>
          <div class="row choices">
            {spaces.data?.map(({ space, title }) => (
              <Checkbox
                key={space}
                label={<bdi>{title || space}</bdi>}
                checked={state.spaces.includes(space)}
                onChange={(isChosen) =>
                  onChange({ spaces: isChosen ? [...state.spaces, space] : state.spaces.filter((name) => name !== space) })
                }
              />
            ))}
          </div>
        </fieldset>
      )}
      <div class="spread">
        <div class="row choices">
          <Checkbox label={t("search.filter.group")} checked={state.isGrouped} onChange={(isGrouped) => onChange({ isGrouped })} />
          <Checkbox label={t("search.filter.flat")} checked={state.isFlat} onChange={(isFlat) => onChange({ isFlat })} />
        </div>
        {hasFilters && (
          <Button variant="quiet" icon="close" onClick={() => onChange({ ...EMPTY, q: state.q })}>{t("search.filter.clear")}</Button>
        )}
      </div>
    </div>
  );
}
