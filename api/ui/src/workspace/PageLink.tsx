// A link to another page of the workspace opens without a reload, and in another tab as links do.
import type { ComponentProps } from "react";

import { follow } from "../visit";

export function PageLink({ to, ...rest }: { to: string } & Omit<ComponentProps<"a">, "href" | "onClick">) {
  return <a href={to} onClick={(event) => follow(event, to)} {...rest} />;
}
