// The AI SDK's schemas (zod) would compile themselves with `new Function`. The page's policy forbids that, and browsers report
// even a try that is caught. This has to be there before they are.

declare global {
  var __zod_globalConfig: { jitless?: boolean } | undefined;
}

globalThis.__zod_globalConfig = { jitless: true };

export {};
