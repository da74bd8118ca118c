// A task on the page that started it: its state, how far it is, and the way to its own page.
import type { ComponentChildren } from "preact";
import { isUnfinished } from "../../api/follow_task";
import type { Task } from "../../api/types";
import { t } from "../../i18n";
import { taskHref } from "../../routes";
import { Time } from "../../ui/data";
import { TaskProgress, TaskStatus } from "../task_progress";

interface FollowedProps {
  title: string;
  /** The level of the title's heading. */
  heading?: "h2" | "h3";
  hint?: string;
  task: Task;
  /** What is shown of a task that is done. */
  children?: ComponentChildren;
}

export function FollowedTask({ title, heading: Heading = "h3", hint, task, children }: FollowedProps) {
  return (
    <section class="card stack tight">
      <div class="spread">
        <div class="row">
          <Heading>{title}</Heading>
          <span role="status"><TaskStatus task={task} /></span>
        </div>
        <span class="row">
          <span class="muted"><Time at={task.created_at} /></span>
          <a href={taskHref(task.task_id)}>{t("followed.task")}</a>
        </span>
      </div>
      {hint && <p class="hint">{hint}</p>}
      {isUnfinished(task) && <TaskProgress task={task} />}
      {task.error && <p class="field-error" dir="auto">{task.error.message}</p>}
      {task.status === "done" && children}
    </section>
  );
}
