// The rows of a list, in blocks. The browser renders only the blocks in sight. It watches each block as the reader
// scrolls, so rows that it watched one by one would cost 10 ms a frame where there are 2,000 of them.
import { type CSSProperties, memo } from "react";

import type { Entity } from "../../client/workspace";
import type { InnerKind } from "../address";
import { blocksOf, isSameBlock } from "./blocks";
import { EntityRow } from "./EntityRow";

type Props = { kind: InnerKind; items: readonly Entity[]; openId?: string };

export function Rows({ kind, items, openId }: Props) {
  return (
    <div role="list" className="rows" data-kind={kind}>
      {blocksOf(items).map((block, index) => (
        <Block key={index} kind={kind} items={block} openId={block.some(({ id }) => id === openId) ? openId : undefined} />
      ))}
    </div>
  );
}

/** React renders a block again only after a change in it. */
const Block = memo(
  function Block({ kind, items, openId }: Props) {
    return (
      <div className="block" style={{ "--rows": items.length } as CSSProperties}>
        {items.map((entity) => (
          <EntityRow key={entity.id} kind={kind} entity={entity} isCurrent={entity.id === openId} />
        ))}
      </div>
    );
  },
  (before, after) => before.kind === after.kind && before.openId === after.openId && isSameBlock(before.items, after.items),
);
