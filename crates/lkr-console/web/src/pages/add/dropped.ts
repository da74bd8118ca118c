// The files of what a person dropped or chose, folders included.
import type { Content } from "./queue";

/** The most files of one drop. */
export const MOST_FILES = 20_000;

/** The files of a drop. Hidden files and folders are left out. */
export async function droppedFiles(transfer: DataTransfer): Promise<Content[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const found: Content[] = [];
  for (const entry of entries) await collect(entry, "", found);
  return found;
}

/** The files of an input, with their paths where a folder was chosen. */
export function chosenFiles(files: FileList): Content[] {
  const contents = [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
  return contents.filter(({ path }) => !path.split("/").some(isHidden)).slice(0, MOST_FILES);
}

async function collect(entry: FileSystemEntry, folder: string, found: Content[]): Promise<void> {
  if (found.length >= MOST_FILES || isHidden(entry.name)) return;
  const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    found.push({ file, path });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    // A reader gives a part of the folder at a time, and nothing at its end.
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return;
    for (const inner of part) await collect(inner, path, found);
  }
}

function isHidden(name: string): boolean {
  return name.startsWith(".");
}
