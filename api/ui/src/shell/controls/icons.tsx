// These are the icons around the messages.
import { iconsOf } from "../../iconsOf";

export const Icon = iconsOf({
  list: "M4 6.5h16M4 12h11M4 17.5h16",
  add: "M12 5v14M5 12h14",
  search: "M10.5 4.5a6 6 0 1 0 0 12 6 6 0 0 0 0-12ZM15 15l4.5 4.5",
  close: "M6 6l12 12M18 6L6 18",
  more: "M5.5 12h.01M12 12h.01M18.5 12h.01",
  send: "M12 19V5.5M6 11l6-6 6 6",
  stop: "M8 8h8v8H8Z",
  attach: "M19 11.5l-7.3 7.3a4.6 4.6 0 0 1-6.5-6.5l7.7-7.7a3.1 3.1 0 0 1 4.4 4.4l-7.6 7.6a1.5 1.5 0 0 1-2.2-2.2l7-7",
  camera: "M4 7.5h3.5L9 5h6l1.5 2.5H20v11H4ZM12 9.5a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4Z",
  voice: "M12 4a2.5 2.5 0 0 1 2.5 2.5v5a2.5 2.5 0 0 1-5 0v-5A2.5 2.5 0 0 1 12 4ZM6.5 11.5a5.5 5.5 0 0 0 11 0M12 17v3",
  system: "M4.5 5.5h15v10h-15ZM9 19h6M12 15.5V19",
  light: "M12 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7ZM12 3.5V5M12 19v1.5M3.5 12H5M19 12h1.5M6 6l1 1M17 17l1 1M18 6l-1 1M7 17l-1 1",
  dark: "M19 14.2A7.5 7.5 0 0 1 9.8 5a7.5 7.5 0 1 0 9.2 9.2Z",
  keyboard: "M3.5 7h17v10h-17ZM7 10.2h.01M10.3 10.2h.01M13.7 10.2h.01M17 10.2h.01M8.5 13.8h7",
  again: "M19.5 12a7.5 7.5 0 1 1-2.2-5.3M19.5 4v4h-4",
  save: "M12 4.5v10M7.5 10.5l4.5 4 4.5-4M5 19h14",
  rename: "M5 19l.8-3.6L15.6 5.6a1.7 1.7 0 0 1 2.4 0l.4.4a1.7 1.7 0 0 1 0 2.4L8.6 18.2 5 19Z",
  delete: "M5 7h14M9.5 7V5h5v2M7 7l.8 12h8.4L17 7M10.3 10.5v5M13.7 10.5v5",
  leave: "M10 5H5.5v14H10M9.5 12H19M15.5 8l4 4-4 4",
  enter: "M14 5h4.5v14H14M4.5 12H14M10.5 8l4 4-4 4",
  caution: "M12 5l8 14H4ZM12 10.5v4M12 16.8h.01",
  briefing: "M5 4h14v16H5zM8.5 8.5h7M8.5 12h7M8.5 15.5h4",
  check: "M5.5 12.5l4 4 9-9.5",
  down: "M7 10l5 5 5-5",
  back: "M19 12H5M11 6l-6 6 6 6",
  talk: "M5 5.5h14v10h-7l-4 3.5v-3.5H5Z",
  memory: "M7 4.5h10v15l-5-3.5-5 3.5Z",
  knowledge: "M12 7c-2-1.3-4.5-1.7-7.5-1.5v12c3-.2 5.5 .2 7.5 1.5 2-1.3 4.5-1.7 7.5-1.5v-12c-3-.2-5.5 .2-7.5 1.5ZM12 7v12",
  filter: "M4.5 7h15M7.5 12h9M10.5 17h3",
  project: "M4.5 6.5h15v12h-15ZM4.5 10.5h15M9 6.5v-2h6v2",
});

/** The mark is an H whose legs hold on to a wave. */
export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <path d="M8.5 5.5v21M23.5 5.5v21M8.5 17.5c2.5-3.6 5-3.6 7.5-1.2s5 2.4 7.5-1.2" />
    </svg>
  );
}
