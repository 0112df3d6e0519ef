/// <reference types="vitest/config" />
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const server = process.env.HOLDFAST ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react(), paintedOnce()],
  resolve: {
    alias: [
      { find: /^zod\/v4(\/mini|\/core)?$/, replacement: here("src/noSchemas.ts") },
      // The edition for browsers has `innerHTML` read the names of characters (`&amp;`), which Trusted Types forbid.
      { find: /^decode-named-character-reference$/, replacement: here("src/messages/markdown/characters.ts") },
    ],
  },
  build: {
    // What the page's Content-Security-Policy forbids: data: URLs of scripts and styles, and an inline polyfill.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // However busy the machine is.
  test: { testTimeout: 60_000 },
  // `npm run dev` shows the page with what is being written, on a server that runs.
  server: { proxy: { "/api": server, "/v1": server, "/readyz": server } },
});

function here(path: string): string {
  return new URL(path, import.meta.url).pathname;
}

/** The script chooses between light and dark; the browser is to paint nothing before that, where it can be told so. */
function paintedOnce(): Plugin {
  const blocking = (html: string) => html.replace('<script type="module"', '<script type="module" blocking="render"');
  return { name: "painted-once", transformIndexHtml: { order: "post", handler: blocking } };
}
