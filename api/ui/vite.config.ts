import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const server = process.env.HOLDFAST ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  build: {
    // What the page's Content-Security-Policy forbids: data: URLs of scripts and styles, and an inline polyfill.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // `npm run dev` shows the page with what is being written, on a server that runs.
  server: { proxy: { "/api": server, "/v1": server, "/readyz": server } },
});
