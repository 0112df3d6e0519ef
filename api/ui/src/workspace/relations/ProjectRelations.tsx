// All relations of a project: a picture, and the same as a list.
import { texts } from "../../i18n/workspace";
import { Rest } from "../controls/Rest";
import { useNames } from "../names";
import { EdgeItem } from "./EdgeItem";
import { endsOf } from "./EntityRelations";
import { Picture } from "./Picture";
import { pictureOf } from "./layout";
import { useEdges } from "./useEdges";
import "./relations.css";

export function ProjectRelations({ projectId }: { projectId: string }) {
  const { reading, remove } = useEdges({ projectId });
  const names = useNames(endsOf(reading.items), projectId);
  const { items } = reading;
  const left = pictureOf(items).left;
  return (
    <div className="relations">
      {items.length > 0 && (
        <>
          <Picture edges={items} projectId={projectId} nameOf={names} />
          {left > 0 && <p className="edges-none">{texts.relations.rest(left)}</p>}
          <h2>{texts.relations.all}</h2>
        </>
      )}
      <ul role="list" className="edges">
        {items.map((edge) => (
          <EdgeItem key={edge.id} edge={edge} nameOf={names} onRemove={remove} />
        ))}
      </ul>
      <Rest reading={reading}>
        <p className="rest">{texts.relations.none}</p>
      </Rest>
    </div>
  );
}
