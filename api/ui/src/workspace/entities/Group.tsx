// The entities of one state. A closed group reads nothing.
import { useCallback, useEffect, useId, useState } from "react";

import { type Entity, type EntityFilter, readEntities } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { Icon } from "../../shell/controls/icons";
import type { InnerKind } from "../address";
import { Rest } from "../controls/Rest";
import { stateText } from "../controls/StateChoice";
import { withItem, without } from "../listed";
import { fits, onNews } from "../news";
import { useListed } from "../useListed";
import { Rows } from "./Rows";

type Props = { kind: InnerKind; state: string; filter: EntityFilter; openId?: string; isOpenAtFirst: boolean; onCount(state: string, count: number | undefined): void };

export function Group({ kind, state, filter, openId, isOpenAtFirst, onCount }: Props) {
  const [isOpen, setIsOpen] = useState(isOpenAtFirst);
  const read = useCallback((cursor: string | undefined) => readEntities(kind, { ...filter, state }, { cursor }), [kind, filter, state]);
  const reading = useListed<Entity>(isOpen ? read : undefined);
  const { items, next, progress, change } = reading;
  useEffect(() => {
    if (!isOpen) return;
    return onNews((news) => {
      if (news.kind !== kind) return;
      const { entity } = news;
      change((listed) => (entity && fits(entity, { ...filter, state }) ? withItem(listed, entity) : without(listed, news.id)));
    });
  }, [isOpen, kind, filter, state, change]);
  const count = isOpen && progress === "idle" ? items.length : undefined;
  useEffect(() => {
    if (isOpen) onCount(state, count);
  }, [isOpen, onCount, state, count]);
  const id = useId();
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
