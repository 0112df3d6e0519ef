// The entities of one kind in a project: a line that adds one, and the groups below it.
import { useCallback, useMemo, useState } from "react";

import type { EntityFilter } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { Icon } from "../../shell/controls/icons";
import type { InnerKind } from "../address";
import { isPast, STATES } from "../kinds";
import { Search } from "../search/Search";
import { AddEntity } from "./AddEntity";
import { EmptyBoard } from "./EmptyBoard";
import { Group } from "./Group";
import { OpenTasks } from "./OpenTasks";
import { keepView, keptView, type TaskView } from "./taskView";
import { type TaskFilter, ViewOptions } from "./ViewOptions";
import "./Board.css";

type Props = { kind: InnerKind; projectId: string; openId?: string; onTalk(): void };

export function Board({ kind, projectId, openId, onTalk }: Props) {
  const [filter, setFilter] = useState<TaskFilter>({});
  const [view, setView] = useState(keptView);
  const [shown, setShown] = useState<"options" | "search">();
  const { state, ...rest } = filter;
  const key = JSON.stringify(rest);
  const wanted = useMemo<EntityFilter>(() => ({ ...JSON.parse(key), project_id: projectId }), [key, projectId]);
  /** How many entities each of the read lists has. */
  const [counts, setCounts] = useState<Record<string, number | undefined>>({});
  const onCount = useCallback((list: string, count: number | undefined) => setCounts((before) => (before[list] === count ? before : { ...before, [list]: count })), []);
  const chosen = Object.values(filter).filter((value) => value !== undefined).length;
  const isByState = kind !== "task" || view.group === "state";
  const hasOpen = !isByState && !isPast(state ?? "");
  const states = STATES[kind].filter((one) => (state === undefined || one === state) && (isByState || isPast(one)));
  const isNothing = (hasOpen ? ["open", ...states] : states).every((list) => counts[list] === 0);
  const choose = (next: TaskView) => {
    keepView(next);
    setView(next);
  };
  const toggle = (part: "options" | "search") => setShown((before) => (before === part ? undefined : part));
  return (
    <div className="board">
      <div className="board-bar">
        <div className="board-add">
          <AddEntity kind={kind} projectId={projectId} />
        </div>
        {kind === "task" && (
          <button type="button" className="icon-button" aria-label={texts.view.options(chosen)} title={texts.view.options(chosen)} aria-expanded={shown === "options"} data-chosen={chosen || undefined} onClick={() => toggle("options")}>
            <Icon name="filter" />
          </button>
        )}
        <button type="button" className="icon-button" aria-label={texts.search.inProject} title={texts.search.inProject} aria-expanded={shown === "search"} onClick={() => toggle("search")}>
          <Icon name="search" />
        </button>
      </div>
      {shown === "search" && <Search projectId={projectId} isFocused />}
      {shown === "options" && <ViewOptions projectId={projectId} filter={filter} view={view} onFilter={setFilter} onView={choose} />}
      {hasOpen && <OpenTasks group={view.group === "due" ? "due" : "priority"} state={state} filter={wanted} openId={openId} onCount={onCount} />}
      {states.map((one) => (
        <Group key={`${one} ${key}`} kind={kind} state={one} order={view.order} filter={wanted} openId={openId} isOpenAtFirst={state !== undefined || !isPast(one)} onCount={onCount} />
      ))}
      {isNothing && (chosen > 0 ? <p className="rest">{texts.list.noMatch}</p> : <EmptyBoard kind={kind} onTalk={onTalk} />)}
    </div>
  );
}
