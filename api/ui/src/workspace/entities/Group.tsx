// The entities of one state. A closed group reads only whether it has any, and a group without any is not shown.
import { useEffect, useId, useMemo, useState } from "react";

import type { EntityFilter } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { Icon } from "../../shell/controls/icons";
import type { InnerKind } from "../address";
import { Rest } from "../controls/Rest";
import { stateText } from "../controls/StateChoice";
import type { TaskOrder } from "../taskOrder";
import { useEntities } from "../useListed";
import { Rows } from "./Rows";

type Props = { kind: InnerKind; state: string; filter: EntityFilter; order: TaskOrder; openId?: string; isOpenAtFirst: boolean; onCount(state: string, count: number | undefined): void };

export function Group({ kind, state, filter, order, openId, isOpenAtFirst, onCount }: Props) {
  const [isOpen, setIsOpen] = useState(isOpenAtFirst);
  const wanted = useMemo(() => ({ ...filter, state }), [filter, state]);
  const reading = useEntities(kind, wanted, { limit: isOpen ? undefined : 1, order: kind === "task" ? order : "newest" });
  const { items, next, progress } = reading;
  const count = progress === "idle" ? items.length : undefined;
  useEffect(() => onCount(state, count), [onCount, state, count]);
  const id = useId();
  if (items.length === 0 && progress !== "failed" && (progress === "idle" || !isOpen)) return null;
  return (
    <section className="group" aria-labelledby={id}>
      <h2 id={id}>
        <button type="button" className="group-head" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          <Icon name="down" />
          <span>{stateText(state)}</span>
          {isOpen && progress === "idle" && <span className="group-count">{texts.list.count(items.length, next !== null)}</span>}
        </button>
      </h2>
      {isOpen && (
        <>
          <Rows kind={kind} items={items} openId={openId} />
          <Rest reading={reading} />
        </>
      )}
    </section>
  );
}
