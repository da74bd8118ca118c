// The categories that documents are classified into.
import { useState } from "preact/hooks";
import { isUnfinished, useLatestTask } from "../../api/follow_task";
import { get, post } from "../../api/client";
import type { Category, Task } from "../../api/types";
import { number, t } from "../../i18n";
import { knownSpaces, useShared } from "../../known";
import { Button, Checkbox, Select } from "../../ui/controls";
import { Fact, Facts, Foreign } from "../../ui/data";
import { Confirm } from "../../ui/dialog";
import { Empty } from "../../ui/feedback";
import { Loaded } from "../../ui/loaded";
import { Page, Section } from "../../ui/page";
import { useResource } from "../../use_resource";
import { FollowedTask } from "./followed_task";
import { categoryCounts, categoryHref, spaceOrAllChoices } from "./names";
import { branchesOf, type TreeItem } from "./taxonomy/tree";

/** The categories, and how many documents each has. */
interface Taxonomy {
  categories: Category[];
  counts: Map<string, number>;
  uncategorized: number;
}

export function TaxonomyPage() {
  const latest = useLatestTask("reclassify");
  // The documents have other categories when they have been classified again, which may be done before the page hears of it.
  const taxonomy = useResource(loadTaxonomy, [latest.data?.task_id, isUnfinished(latest.data)]);
  return (
    <Page title={t("nav.taxonomy")}>
      <p class="muted">{t("taxonomy.intro")}</p>
      <Reclassification latest={latest} />
      <Section title={t("taxonomy.categories")}>
        <Loaded resource={taxonomy} rows={8}>{(taxonomy) => <Tree taxonomy={taxonomy} />}</Loaded>
      </Section>
    </Page>
  );
}

async function loadTaxonomy(signal: AbortSignal): Promise<Taxonomy> {
  const [{ categories }, stats] = await Promise.all([
    get("/api/v1/knowledge/categories", { signal }),
    get("/api/v1/knowledge/stats", { signal }),
  ]);
  const counts = new Map(categoryCounts(stats).map(({ name, count }) => [name, count]));
  return { categories, counts, uncategorized: stats.uncategorized_count };
}

function Tree({ taxonomy }: { taxonomy: Taxonomy }) {
  const [isDetailed, setDetailed] = useState(false);
  if (taxonomy.categories.length === 0) return <Empty icon="tag" title={t("taxonomy.empty")} />;
  return (
    <div class="card">
      <Checkbox label={t("taxonomy.details")} checked={isDetailed} onChange={setDetailed} />
      <Branch taxonomy={taxonomy} branch={branchesOf(taxonomy.categories)} isDetailed={isDetailed} />
      <Former taxonomy={taxonomy} />
      <p class="category uncategorized">
        <span>{t("category.none")}</span>
        <span class="category-count">{t("taxonomy.documents", { n: taxonomy.uncategorized })}</span>
      </p>
    </div>
  );
}

/** Categories that documents have, and the file no more: they were renamed or removed there. */
function Former({ taxonomy: { categories, counts } }: { taxonomy: Taxonomy }) {
  const known = new Set(categories.map(({ name }) => name));
  const former = [...counts.keys()].filter((name) => !known.has(name));
  if (former.length === 0) return null;
  return (
    <div class="former">
      <p class="hint">{t("taxonomy.former")}</p>
      <ul class="tree">
        {former.map((name) => (
          <li key={name} class="category">
            <h3><Foreign>{name}</Foreign></h3>
            <CategoryCount name={name} count={counts.get(name) ?? 0} />
          </li>
        ))}
      </ul>
    </div>
  );
}

interface BranchProps {
  taxonomy: Taxonomy;
  branch: TreeItem[];
  isDetailed: boolean;
}

function Branch({ taxonomy, branch, isDetailed }: BranchProps) {
  if (branch.length === 0) return null;
  return (
    <ul class="tree">
      {branch.map(({ category, children }) => (
        <li key={category.id}>
          <CategoryLine category={category} count={taxonomy.counts.get(category.name) ?? 0} isDetailed={isDetailed} />
          <Branch taxonomy={taxonomy} branch={children} isDetailed={isDetailed} />
        </li>
      ))}
    </ul>
  );
}

function CategoryLine({ category, count, isDetailed }: { category: Category; count: number; isDetailed: boolean }) {
  const { name, description, keywords } = category;
  return (
    <div class="category">
      <div class="category-text">
        <h3><Foreign>{name}</Foreign></h3>
        {isDetailed && description !== "" && <p dir="auto">{description}</p>}
        {isDetailed && keywords.length > 0 && <p class="hint" dir="auto">{keywords.join(" · ")}</p>}
      </div>
      <CategoryCount name={name} count={count} />
    </div>
  );
}

/** How many documents a category has, and the way to them. */
function CategoryCount({ name, count }: { name: string; count: number }) {
  if (count === 0) return <span class="category-count muted">{number(0)}</span>;
  return (
    <a class="category-count" href={categoryHref(name)}>
      {t("taxonomy.documents", { n: count })}
      <span class="visually-hidden">: {name}</span>
    </a>
  );
}

function Reclassification({ latest }: { latest: ReturnType<typeof useLatestTask> }) {
  const spaces = useShared(knownSpaces);
  const [space, setSpace] = useState("");
  const [isAsking, setAsking] = useState(false);
  const reclassify = async () => {
    await post("/api/v1/knowledge/reclassify", { body: space === "" ? {} : { space } });
    latest.follow();
  };
  return (
    <Section title={t("taxonomy.reclassify")}>
      <p class="muted">{t("taxonomy.reclassify_hint")}</p>
      <div class="filter-row">
        <Select label={t("taxonomy.where")} value={space} choices={spaceOrAllChoices(spaces.data)} onChange={setSpace} />
        <Button icon="retry" isBusy={isUnfinished(latest.data)} onClick={() => setAsking(true)}>{t("taxonomy.start")}</Button>
      </div>
      {latest.data && (
        <FollowedTask title={t("taxonomy.last")} task={latest.data}><Outcome task={latest.data} /></FollowedTask>
      )}
      {isAsking && (
        <Confirm title={t("taxonomy.ask")} confirm={t("taxonomy.start")} onConfirm={reclassify} onClose={() => setAsking(false)}>
          <p>{space === "" ? t("taxonomy.ask_all") : t("taxonomy.ask_space", { space })}</p>
        </Confirm>
      )}
    </Section>
  );
}

function Outcome({ task }: { task: Task }) {
  const { result } = task;
  if (!result || !("by_hand" in result)) return null;
  return (
    <Facts>
      <Fact name={t("taxonomy.of_documents")}>{number(result.documents)}</Fact>
      <Fact name={t("taxonomy.changed")}>{number(result.changed)}</Fact>
      <Fact name={t("taxonomy.by_hand")}>{number(result.by_hand)}</Fact>
      <Fact name={t("category.none")}>{number(result.uncategorized)}</Fact>
    </Facts>
  );
}
