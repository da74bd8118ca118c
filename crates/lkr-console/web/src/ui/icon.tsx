// Icons: lines on a grid of 20 x 20.
const PATHS = {
  add: "M10 4v12M4 10h12",
  archive: "M3 4h14v4H3zM4.5 8v8h11V8M8 11h4",
  back: "M12 4l-6 6 6 6",
  check: "M4 10.5l4 4 8-9",
  chart: "M3 17h14M5 14v-4M9 14V5M13 14V8M17 14v-3",
  close: "M5 5l10 10M15 5L5 15",
  copy: "M7 7h9v9H7zM4 13V4h9",
  document: "M5 2.5h7l3.5 3.5v11.5H5zM12 2.5V6h3.5M7.5 10h5M7.5 13h5",
  documents: "M7 5V2.5h6l3.5 3.5v8H14M3.5 5H10l3.5 3.5v9h-10z",
  down: "M4 7.5l6 6 6-6",
  download: "M10 3v10M6 9.5l4 4 4-4M3.5 17h13",
  edit: "M4 16l.8-3.6L13 4.2l2.8 2.8-8.2 8.2zM11.5 5.7l2.8 2.8",
  external: "M11 3.5h5.5V9M16.5 3.5L9 11M14 11.5v5H3.5V6h5",
  filter: "M3 5h14M6 10h8M8.5 15h3",
  flask: "M8 3h4M9 3v5l-5 8.5h12L11 8V3M6.5 13h7",
  group: "M7 9.5a2.75 2.75 0 1 0 0-5.5 2.75 2.75 0 0 0 0 5.5zM2 16.5c0-3 2-5 5-5s5 2 5 5M13 4.3a2.6 2.6 0 0 1 0 5M14 11.7c2.4.4 4 2.2 4 4.8",
  key: "M7 13.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM10.5 10H18M15 10v3",
  language: "M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15zM2.5 10h15M10 2.5c-5 5-5 10 0 15M10 2.5c5 5 5 10 0 15",
  link: "M8.5 11.5l3-3M9.5 6L12 3.5a3.2 3.2 0 0 1 4.5 4.5L14 10.5M10.5 14L8 16.5A3.2 3.2 0 0 1 3.5 12L6 9.5",
  list: "M7 5h10M7 10h10M7 15h10M3.5 5h.01M3.5 10h.01M3.5 15h.01",
  logout: "M8 3.5H3.5v13H8M8 10h9M13.5 6.5L17 10l-3.5 3.5",
  menu: "M3 5.5h14M3 10h14M3 14.5h14",
  moon: "M16.5 11.5A6.8 6.8 0 0 1 8.5 3.5a6.8 6.8 0 1 0 8 8z",
  page: "M4.5 2.5h11v15h-11zM7 6h6M7 9h6M7 12h3.5",
  pulse: "M2.5 10h3.5l2-5 4 10 2-5h3.5",
  retry: "M16 6.5A7 7 0 1 0 17 11M16.5 2.5v4h-4",
  right: "M7.5 4l6 6-6 6",
  search: "M9 15a6 6 0 1 0 0-12 6 6 0 0 0 0 12zM13.5 13.5L17.5 17.5",
  settings: "M3 5.5h8M15 5.5h2M3 14.5h2M9 14.5h8M13 7.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 16.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  shield: "M10 2.5l6.5 2.5v5c0 4-3 6.5-6.5 7.5-3.5-1-6.5-3.5-6.5-7.5V5z",
  space: "M2.5 5.5h5l2 2h8v9h-15z",
  stop: "M5 5h10v10H5z",
  tag: "M3 3h7l7 7-7 7-7-7zM6.5 6.5h.01",
  trash: "M3.5 5.5h13M8 5.5V3.5h4v2M5 5.5l.8 11.5h8.4L15 5.5M8.3 8.5v5.5M11.7 8.5v5.5",
  upload: "M10 14V4M6 7.5l4-4 4 4M3.5 17h13",
  user: "M10 10a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3.5 17.5c0-3.5 2.8-5.5 6.5-5.5s6.5 2 6.5 5.5",
  warning: "M10 3L2.5 16.5h15zM10 8v4M10 14.3h.01",
  webhook: "M6 15a2.5 2.5 0 1 1-1.5-4.5M6 15h6M10 8.5a2.5 2.5 0 1 1 2.3-3.8M10 8.5L7 13.5M14.5 17a2.5 2.5 0 1 0-2-4M12.5 13L10 8.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
