// In place of zod, in which the SDK describes what may be sent and received. Only its own transports and validators read these
// descriptions, and the page has neither: they would be a fifth of its script, and be made anew at every start. It is part of
// the build (`vite.config.ts` puts it there), and no other file imports it.

/** Whatever is described with it is again nothing; what comes to be judged by it is a mistake of ours, and is told so. */
const nothing: never = new Proxy(function () {} as never, {
  get: (_, name) => {
    // It is no promise, which would be waited for without end, and nothing that the language knows by a symbol.
    if (name === "then" || typeof name === "symbol") return undefined;
    return /parse|validate/i.test(name) ? refuse : nothing;
  },
  apply: () => nothing,
  construct: () => nothing,
});

function refuse(): never {
  throw new Error("the page has no schemas: see noSchemas.ts");
}

export const { NEVER, any, array, boolean, catchall, config, custom, discriminatedUnion, extend, globalRegistry, int, json, lazy, length, literal, looseObject, maxLength, maximum, minLength, minimum, never, nonnegative, nullable, nullish, number, object, optional, pipe, positive, record, refine, safeParse, safeParseAsync, startsWith, string, toJSONSchema, transform, union, unknown, url } = nothing as Record<string, never>;
export { nothing as enum, nothing as instanceof, nothing as null };
