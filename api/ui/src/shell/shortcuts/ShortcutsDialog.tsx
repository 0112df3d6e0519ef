// This dialog lists the shortcuts and has the switch for the letters.
import { words } from "../../i18n";
import { Dialog } from "../controls/Dialog";
import { shortcuts } from "./shortcuts";
import { turnLetters, useLetters } from "./useShortcuts";
import "./ShortcutsDialog.css";

const { keys } = words.shell.shortcuts;

export function ShortcutsDialog({ onClose }: { onClose(): void }) {
  const areLettersOn = useLetters();
  const rows = [
    { name: words.shell.shortcuts.send, keys: [keys.Enter] },
    { name: words.shell.shortcuts.breakLine, keys: [keys.Shift, keys.Enter] },
    ...shortcuts.map(({ command, key }) => ({ name: words.shell.shortcuts[command], keys: [key === "Escape" ? keys.Escape : key.toUpperCase()] })),
  ];
  return (
    <Dialog title={words.shell.shortcuts.title} onClose={onClose}>
      <dl className="shortcuts" data-letters={areLettersOn ? "on" : "off"}>
        {rows.map((row) => (
          <div key={row.name}>
            <dt>{row.name}</dt>
            <dd>
              {row.keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <p className="shortcuts-hint">{words.shell.shortcuts.hint}</p>
      <label className="shortcuts-letters">
        <input type="checkbox" checked={areLettersOn} onChange={(event) => turnLetters(event.target.checked)} />
        {words.shell.shortcuts.letters}
      </label>
    </Dialog>
  );
}
