// The categories as a tree.
import type { Category } from "../../../api/types";

export interface TreeItem {
  category: Category;
  children: TreeItem[];
}

/** The levels that are shown as such. What is deeper stands at the last one: further ones would leave no room for names. */
const MOST_LEVELS = 6;

/** The categories without a parent, each with those below it, in the order of the file. */
export function branchesOf(categories: readonly Category[]): TreeItem[] {
  const items = new Map(categories.map((category) => [category.id, { category, children: [] as TreeItem[] }]));
  const roots: TreeItem[] = [];
  for (const item of items.values()) {
    const parent = items.get(item.category.parent ?? "");
    (parent?.children ?? roots).push(item);
  }
  return roots.map((root) => shallow(root, MOST_LEVELS));
}

/** An item with at most so many levels, its own one included. */
function shallow({ category, children }: TreeItem, levels: number): TreeItem {
  if (levels === 2) return { category, children: children.flatMap(flat) };
  return { category, children: children.map((child) => shallow(child, levels - 1)) };
}

/** An item and all that are below it, without children, each before those below it. */
function flat(root: TreeItem): TreeItem[] {
  const found: TreeItem[] = [];
  const waiting = [root];
  for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
    found.push({ category: item.category, children: [] });
    waiting.push(...[...item.children].reverse());
  }
  return found;
}
