// The page loads the code of some parts when it first shows them.
import { type ComponentType, useEffect, useState } from "react";

import { words } from "./i18n";

/**
 * Returns a component whose code arrives later. If the load fails, for example after a new version, the page says so.
 */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let arrived: ComponentType<Props> | undefined;
  return function Later(props: Props) {
    const [Component, setComponent] = useState(() => arrived);
    const [isLost, setIsLost] = useState(false);
    useEffect(() => {
      if (Component) return;
      let isOver = false;
      load().then(
        (component) => {
          arrived = component;
          if (!isOver) setComponent(() => component);
        },
        () => isOver || setIsLost(true),
      );
      return () => {
        isOver = true;
      };
    }, [Component]);
    if (Component) return <Component {...props} />;
    if (!isLost) return null;
    return (
      <p className="outdated" role="alert">
        {words.shell.outdated}{" "}
        <button type="button" className="button" onClick={() => location.reload()}>
          {words.shell.reload}
        </button>
      </p>
    );
  };
}
