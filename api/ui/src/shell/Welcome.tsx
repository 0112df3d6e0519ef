// What an empty chat shows: a line, whom one talks to, and a few things to try.
import { words } from "../i18n";
import { AgentPicker } from "./AgentPicker";
import { Mark } from "./icons";
import type { useAgents } from "./useAgents";
import "./Welcome.css";

export function Welcome({ agents }: { agents: ReturnType<typeof useAgents> | undefined }) {
  return (
    <div className="welcome">
      <Mark />
      <h2>{words.shell.welcome.line}</h2>
      {agents && <AgentPicker {...agents} />}
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
