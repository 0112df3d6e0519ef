// The page shows this in place of a missing conversation or an unknown address.
import { words } from "../i18n";
import { Mark } from "./controls/icons";
import "./Nowhere.css";

type Props = { title: string; text?: string; onNew(): void };

export function Nowhere({ title, text, onNew }: Props) {
  return (
    <div className="nowhere">
      <Mark />
      <h2>{title}</h2>
      {text && <p>{text}</p>}
      <button type="button" className="button" data-main="" onClick={onNew}>
        {words.shell.newChat}
      </button>
    </div>
  );
}
