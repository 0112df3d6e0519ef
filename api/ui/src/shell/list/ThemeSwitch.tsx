// The reader chooses between light, dark and the system's setting here.
import { useId } from "react";

import { words } from "../../i18n";
import { Icon } from "../controls/icons";
import { chooseTheme, themes, useTheme } from "./theme";
import "./ThemeSwitch.css";

export function ThemeSwitch() {
  const current = useTheme();
  const group = useId();
  return (
    <div className="theme-switch" role="radiogroup" aria-label={words.shell.theme.name}>
      {themes.map((theme) => (
        <label key={theme} title={words.shell.theme[theme]}>
          <input
            type="radio"
            name={group}
            checked={theme === current}
            aria-label={words.shell.theme[theme]}
            onChange={() => chooseTheme(theme)}
          />
          <Icon name={theme} />
        </label>
      ))}
    </div>
  );
}
