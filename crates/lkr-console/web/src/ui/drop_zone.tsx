// A place that takes files which are dropped on it.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { options } from "../options";

/** The kinds of files that can be uploaded, as an input of files takes them. */
export function acceptedFiles(): string {
  return options.upload_extensions.map((extension) => `.${extension}`).join(",");
}

export function DropZone({ onDrop, children }: { onDrop: (transfer: DataTransfer) => void; children: ComponentChildren }) {
  const [isOver, setOver] = useState(false);
  return (
    <div
      class={isOver ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (event.dataTransfer) onDrop(event.dataTransfer);
      }}
    >
      {children}
    </div>
  );
}
