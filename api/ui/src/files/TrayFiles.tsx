// Shows the files on a tray: each with its picture or type, its size, its progress, and buttons.
import { words } from "../i18n";
import { messageField, useRefocus } from "../refocus";
import { Icon } from "../shell/controls/icons";
import { canHelp, reasonOf } from "./announcement";
import { kindOf, sizeOf } from "./size";
import { Thumbnail } from "./Thumbnail";
import type { Item, Tray } from "./tray";
import "./files.css";

type Place = () => HTMLElement | null | undefined;

type Props = {
  tray: Tray;
  items: readonly Item[];
  /** The focus goes there when a focused button disappears. */
  place?: Place;
};

export function TrayFiles({ tray, items, place = messageField }: Props) {
  return (
    <ul role="list" className="tray" aria-label={words.files.list}>
      {items.map((item) => (
        <TrayFile key={item.key} tray={tray} item={item} place={place} />
      ))}
    </ul>
  );
}

function TrayFile({ tray, item, place }: { tray: Tray; item: Item; place: Place }) {
  const { key, name, state, received, bytes } = item;
  const removeButton = useRefocus<HTMLButtonElement>(place);
  const removeLabel = state === "uploading" ? words.files.cancel(name) : words.files.remove(name);
  return (
    <li className="file" data-state={state}>
      {item.preview ? <img className="file-sign" src={item.preview} alt="" /> : item.id ? <Thumbnail file={{ ...item, id: item.id }} className="file-sign" alt="" otherwise={<Sign item={item} />} /> : <Sign item={item} />}
      <span className="file-facts">
        <span className="file-name" dir="auto" title={name}>
          {name}
        </span>
        <span className="file-note" dir="auto">
          {state === "failed" ? `${words.files.failed} · ${reasonOf(words.files, item)}` : state === "uploading" && received > 0 ? `${sizeOf(received)} / ${sizeOf(bytes)}` : sizeOf(bytes)}
        </span>
        {state === "uploading" && <progress className="file-progress" value={received} max={Math.max(1, bytes)} aria-label={words.files.progress(name)} />}
      </span>
      {state === "failed" && canHelp(item.problem) && <RetryButton name={name} retry={() => tray.retry(key)} place={() => removeButton.current} />}
      <button type="button" ref={removeButton} className="icon-button" aria-label={removeLabel} title={removeLabel} onClick={() => tray.remove(key)}>
        <Icon name="close" />
      </button>
    </li>
  );
}

function RetryButton({ name, retry, place }: { name: string; retry(): void; place: Place }) {
  const button = useRefocus<HTMLButtonElement>(place);
  return (
    <button type="button" ref={button} className="icon-button" aria-label={words.files.retry(name)} title={words.files.retry(name)} onClick={retry}>
      <Icon name="again" />
    </button>
  );
}

function Sign({ item }: { item: Item }) {
  return (
    <span className="file-sign" aria-hidden="true">
      {kindOf(item)}
    </span>
  );
}
