/// <reference types="vitest/config" />
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

import react from "@vitejs/plugin-react";
import { gzip } from "pako";
import { defineConfig, type Plugin } from "vite";

const server = process.env.HOLDFAST ?? "http://127.0.0.1:8080";

/** The frame of the page and its late pieces share these. */
const SHARED =
  /src\/(id|wake|patience|backoff|refocus|later|visit|changes|shown|useShown|iconsOf|isComposing|i18n\/index|client\/(call|context|files|server)|chat\/(message|tools)|files\/(tray|useTray|drafts|AddFiles|UploadAnnouncer|announcement|previews|useTransfers)|(workspace|knowledge|memories)\/address|messages\/keys|shell\/(address|kept|useNarrow|list\/marks|chat\/title|shortcuts\/useShortcuts|shortcuts\/shortcuts|controls\/(toasts|icons|Menu|Dialog)))\.tsx?$/;

/** The messages and other pieces share these. */
const MESSAGES = /src\/messages\/(useActions|sought|usePrinting|call|icons|entities|memories|MemoryFoot|CopyButton|LongText|SentAt|time|useNow|Briefing|Disclosure|ToolCall|Value|structure|duration|Messages|Message|Answer|Activity|doing|segments|MessageActions|cited|Ended|Ending|Notice|Trouble|reason)\.tsx?$/;

/** The workspace and the knowledge share these; fewer files also mean a shorter list of them in the first script. */
const PARTS = /src\/(workspace\/((PageLink|useListed|listed|news|names|kinds|dates|frame)\.tsx?|(workspace|Top|search\/Search|projects\/ProjectList)\.css)|files\/size\.ts)$/;

/** A chat of a reader with collections needs these. */
const COLLECTIONS = /src\/(i18n|client)\/knowledge\.ts$/;

/** An answer with sources needs these of the knowledge. */
const PASSAGES = /src\/(knowledge\/((Gone|Top|useKnown|paths)\.tsx?|knowledge\.css|document\/.*)|messages\/(citing|Sources|citations|markdown\/marks?)\.(tsx?|css))$/i;

export default defineConfig({
  plugins: [react(), paintedOnce(), compressed()],
  resolve: {
    // The page is built with the source of the client package, whose own packages are those of the page.
    dedupe: ["eventsource-parser"],
    alias: [
      { find: /^holdfast-client\/(.*)$/, replacement: here("../../clients/typescript/src/$1.ts") },
      { find: /^zod\/v4(\/mini|\/core)?$/, replacement: here("src/noSchemas.ts") },
      // The package has tables of all attributes of HTML and SVG; an answer has few.
      { find: /^property-information$/, replacement: here("src/messages/markdown/properties.ts") },
      // The package's browser edition decodes the names of characters (`&amp;`) with `innerHTML`, which Trusted Types
      // forbid.
      { find: /^decode-named-character-reference$/, replacement: here("src/messages/markdown/characters.ts") },
    ],
  },
  build: {
    // The page's Content-Security-Policy forbids both: data: URLs of scripts and styles, and an inline polyfill.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The build compresses each file by itself, so the small modules that several pieces share are one file.
    // The words of each language need `apart`, and another piece waits for these words: a piece with both would wait for
    // itself.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "apart", test: /src\/i18n\/apart\.ts$/, priority: 1 }, { name: "shared", test: SHARED }, { name: "messages", test: MESSAGES }, { name: "parts", test: PARTS }, { name: "collections", test: COLLECTIONS }, { name: "passages", test: PASSAGES }] } } },
  },
  // The time-out also suits a busy machine.
  test: { testTimeout: 60_000 },
  // `npm run dev` serves the page from the current source, against a running server.
  server: { fs: { allow: [".", "../../clients/typescript"] }, proxy: { "/api": server, "/v1": server, "/readyz": server } },
});

function here(path: string): string {
  return new URL(path, import.meta.url).pathname;
}

/**
 * The script chooses between light and dark; the browser must paint nothing before that, where it supports the
 * attribute.
 */
function paintedOnce(): Plugin {
  const blocking = (html: string) => html.replace('<script type="module"', '<script type="module" blocking="render"');
  return { name: "painted-once", transformIndexHtml: { order: "post", handler: blocking } };
}

/**
 * Writes a Brotli and a gzip copy beside each file of the page, because the server compresses nothing. Equal source
 * gives equal bytes: gzip uses a compressor in JavaScript, because Node's output differs between processors.
 */
function compressed(): Plugin {
  let folder = "";
  return {
    name: "compressed",
    apply: "build",
    configResolved: ({ root, build }) => {
      folder = join(root, build.outDir);
      if (build.outDir.startsWith("/")) folder = build.outDir;
    },
    closeBundle: () => {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || /\.(br|gz)$/.test(entry.name)) continue;
        const path = join(entry.parentPath, entry.name);
        const bytes = readFileSync(path);
        // A file of a packet's size gains nothing.
        if (bytes.length < 1_024) continue;
        writeFileSync(`${path}.gz`, gzip(bytes, { level: 9 }));
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
        writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
      }
    },
  };
}
