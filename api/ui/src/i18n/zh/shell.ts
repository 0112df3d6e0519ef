export const shell: typeof import("../en/shell").shell = {};
