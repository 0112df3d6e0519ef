// An empty chat shows this line, and a few suggestions.
import { words } from "../../i18n";
import { Mark } from "../controls/icons";
import "./Welcome.css";

type Props = {
  /** Whether a scripted model answers, not a real one. */
  isScripted: boolean;
};

export function Welcome({ isScripted }: Props) {
  return (
    <div className="welcome">
      <Mark />
      <h2>{words.shell.welcome.line}</h2>
      {isScripted && <p className="welcome-note">{words.shell.model.note}</p>}
    </div>
  );
}

export function Tries({ onTry }: { onTry(text: string): void }) {
  return (
    <section className="tries" aria-label={words.shell.welcome.tries}>
      <ul role="list">
        {words.shell.welcome.prompts.map(({ title, text }) => (
          <li key={title}>
            <button type="button" onClick={() => onTry(text)}>
              <strong>{title}</strong>
              <span>{text}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
