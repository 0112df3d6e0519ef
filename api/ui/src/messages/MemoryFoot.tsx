// The line below an answer that has used memories leads to them.
import { words } from "../i18n";
import { linkToMemories } from "../memories/address";
import { follow } from "../visit";

export function MemoryFoot({ ids }: { ids: readonly string[] }) {
  if (ids.length === 0) return null;
  const path = linkToMemories(ids);
  return (
    <p className="memory-foot">
      <a href={path} onClick={(event) => follow(event, path)}>
        {words.message.usedMemories(ids.length)}
      </a>
    </p>
  );
}
