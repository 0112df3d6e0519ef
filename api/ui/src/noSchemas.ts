// This stub replaces zod, in which the SDK describes its inputs and outputs. Only the SDK's own transports and
// validators read these descriptions, and the page has neither. Zod would be a fifth of the page's script, and would
// build the descriptions at every start. `vite.config.ts` puts the stub into the build, and no other file imports it.

/** Every description returns the stub itself; a validation with it is a bug in the page, and throws. */
const nothing: never = new Proxy(function () {} as never, {
  get: (_, name) => {
    // It is no promise, which `await` would wait for without end, and it has no property that the language reads by a
    // symbol.
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
