// The files of what a person dropped or chose, folders included.
import type { Content } from "./queue";

/** The most files that are taken at once. */
export const MOST_FILES = 20_000;

/** What was dropped or chosen. */
export interface Taken {
  contents: Content[];
  /** Whether there are more files than are taken at once. */
  isCut: boolean;
}

/** The files of a drop. Hidden files and folders are left out; what cannot be opened is told as such. */
export async function droppedFiles(transfer: DataTransfer): Promise<Taken> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const found: Content[] = [];
  for (const entry of entries) await collect(entry, "", found);
  return taken(found);
}

/** The files of an input, with their paths where a folder was chosen. */
export function chosenFiles(files: FileList): Taken {
  const contents = [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
  return taken(contents.filter(({ path }) => !path.split("/").some(isHidden)));
}

function taken(found: Content[]): Taken {
  return { contents: found.slice(0, MOST_FILES), isCut: found.length > MOST_FILES };
}

async function collect(entry: FileSystemEntry, folder: string, found: Content[]): Promise<void> {
  // One more than is taken tells that there are more.
  if (found.length > MOST_FILES || isHidden(entry.name)) return;
  const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
  try {
    if (entry.isFile) found.push({ file: await fileOf(entry as FileSystemFileEntry), path });
    else await collectFolder(entry as FileSystemDirectoryEntry, path, found);
  } catch {
    // Such as a link to nothing, or what the person may not read: the rest is taken all the same.
    found.push({ unreadable: true, path });
  }
}

async function collectFolder(entry: FileSystemDirectoryEntry, path: string, found: Content[]): Promise<void> {
  const reader = entry.createReader();
  for (;;) {
    // A reader gives a part of the folder at a time, and nothing at its end.
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return;
    for (const inner of part) await collect(inner, path, found);
  }
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

function isHidden(name: string): boolean {
  return name.startsWith(".");
}
