import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { language } from "./i18n";
import { App } from "./shell/App";
import { applyTheme } from "./shell/list/theme";
import "./theme.css";
import "./print.css";

// The theme must be set before the first paint: the page has no content but React's.
applyTheme();
document.documentElement.lang = language;

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
