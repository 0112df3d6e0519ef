// Tells a screen reader of the uploads. The region exists before them.
import { useEffect, useRef, useState } from "react";

import { words } from "../i18n";
import { announcementOf } from "./announcement";
import type { Item } from "./tray";

export function UploadAnnouncer({ items }: { items: readonly Item[] }) {
  const before = useRef(items);
  const [text, setText] = useState("");
  useEffect(() => {
    const said = announcementOf(words.files, before.current, items);
    before.current = items;
    if (said !== undefined || items.length === 0) setText(said ?? "");
  }, [items]);
  return (
    <p className="unseen" aria-live="polite">
      {text}
    </p>
  );
}
