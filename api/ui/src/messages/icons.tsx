// These are the icons of messages.
import { iconsOf } from "../iconsOf";

export const Icon = iconsOf({
  copy: "M9 9h10v10H9zM5 15V5h10",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12M18 6L6 18",
  again: "M19.5 12a7.5 7.5 0 1 1-2.2-5.3M19.5 4v4h-4",
  pencil: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  branch: "M7 4v16M7 14c6 0 10-2 10-7M14 7l3-3 3 3",
  chevron: "M9 6l6 6-6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  thought: "M9 18h6M10 21h4M12 3a6 6 0 0 0-3.6 10.8c.7.6 1.1 1.3 1.1 2.2h5c0-.9.4-1.6 1.1-2.2A6 6 0 0 0 12 3z",
  tool: "M14.5 6.5a4 4 0 0 0-5.2 5.2L4 17l3 3 5.3-5.3a4 4 0 0 0 5.2-5.2l-2.5 2.5-2.5-.5-.5-2.5z",
  question: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9.6 9.6a2.4 2.4 0 1 1 3.5 2.2c-.7.4-1.1.8-1.1 1.6M12 16.4v.01",
  warning: "M12 4l9 16H3zM12 10v4.5M12 17.2v.01",
  shield: "M12 3l7 3v5.5c0 4.3-2.9 7.6-7 9.5-4.1-1.9-7-5.2-7-9.5V6z",
  image: "M4 5h16v14H4zM4 16l4.5-4.5 4 4 3-3 4.5 4.5M15.5 9v.01",
  skip: "M6 12h12",
  briefing: "M5 4h14v16H5zM8.5 8.5h7M8.5 12h7M8.5 15.5h4",
});

/** The spinner shows that an operation is running. */
export function Spinner() {
  return <span className="spinner" aria-hidden="true" />;
}
