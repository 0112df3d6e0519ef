// Shows the messages as soon as their code has arrived. The page requests the code at once, but is usable before it
// arrives.
import { useEffect, useState, type ComponentProps } from "react";

import type { Messages } from "../../messages/Messages";
import { words } from "../../i18n";

let arrived: typeof Messages | undefined;
const arriving = import("../../messages/Messages").then((module) => (arrived = module.Messages));
// The component below reports a failure.
arriving.catch(() => {});

export function MessagesLater(props: ComponentProps<typeof Messages>) {
  const [Component, setComponent] = useState(() => arrived);
  const [isLost, setIsLost] = useState(false);
  useEffect(() => {
    if (!Component) arriving.then((component) => setComponent(() => component), () => setIsLost(true));
  }, [Component]);

  if (Component) return <Component {...props} />;
  if (!isLost) return null;
  return (
    <div className="chat-lost" role="alert">
      <p>{words.shell.outdated}</p>
      <button type="button" className="button" onClick={() => location.reload()}>
        {words.shell.reload}
      </button>
    </div>
  );
}
