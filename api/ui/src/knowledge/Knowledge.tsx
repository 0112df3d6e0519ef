// The knowledge's pages: the address says which one is open.
import { useEffect, useRef } from "react";

import type { KnowledgeView } from "./address";
import { CollectionPage } from "./collection/CollectionPage";
import { CollectionList } from "./collections/CollectionList";
import { DocumentPage } from "./document/DocumentPage";
import type { Frame } from "./frame";
import { passageIn } from "./paths";
import "../shell/controls/controls.css";
import "../workspace/workspace.css";
import "./knowledge.css";

export function Knowledge({ view, frame }: { view: KnowledgeView; frame: Frame }) {
  useFocus(view.view === "collections" ? view.view : view.id);
  switch (view.view) {
    case "collections":
      return <CollectionList frame={frame} />;
    case "collection":
      return <CollectionPage key={view.id} id={view.id} frame={frame} />;
    case "document":
      return <DocumentPage key={view.id} id={view.id} passage={passageIn(view.search)} frame={frame} />;
  }
}

/** Moves the focus to a newly opened page, so that the keyboard and a screen reader begin at its start. */
function useFocus(page: string) {
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) document.getElementById("chat")?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [page]);
}
