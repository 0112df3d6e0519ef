// The workspace's pages: the address says which one is open.
import { useEffect, useRef } from "react";

import type { WorkspaceView } from "./address";
import type { Frame } from "./frame";
import { ProjectList } from "./projects/ProjectList";
import { ProjectPage } from "./project/ProjectPage";
import { TemplateList } from "./templates/TemplateList";
import "../shell/controls/controls.css";
import "./workspace.css";

export function Workspace({ view, frame }: { view: WorkspaceView; frame: Frame }) {
  useFocus(view.view === "project" ? view.projectId : view.view);
  switch (view.view) {
    case "projects":
      return <ProjectList frame={frame} />;
    case "templates":
      return <TemplateList frame={frame} />;
    case "project":
      return <ProjectPage key={view.projectId} view={view} frame={frame} />;
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
