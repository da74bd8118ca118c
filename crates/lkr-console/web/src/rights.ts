// What the person may do, as the server decides it: pages offer nothing that would be refused.
import type { Document, Space, Task } from "./api/types";
import { spaceOf } from "./known";
import { isAdmin, user } from "./session";

/** Whether the person may add documents to a space. */
export function mayAdd({ write, your_role }: Space): boolean {
  return isAdmin.value || write === "accounts" || your_role === "writer" || your_role === "manager";
}

/** Whether the person may change a document of a space: its creator while a writer there, the space's managers, admins. */
export function mayChange({ created_by }: Pick<Document, "created_by">, space: Space | undefined): boolean {
  if (isAdmin.value || space?.your_role === "manager") return true;
  return space !== undefined && mayAdd(space) && created_by === user.value?.username;
}

/** Whether the person may cancel, retry or delete a task. A space that is not known forbids nothing to whoever began it. */
export function mayChangeTask({ created_by, space: name, doc_id }: Task): boolean {
  if (isAdmin.value) return true;
  const space = name && doc_id ? spaceOf(name) : undefined;
  return space === undefined ? created_by === user.value?.username : mayChange({ created_by }, space);
}
