// Where the notices stand. The region is there before them, so that a screen reader hears what comes into it.
import { messageField, useRefocus } from "../refocus";
import { type Toast, useToasts } from "./toasts";
import "./Toasts.css";

export function Toasts() {
  return (
    <div className="toasts" role="status">
      {useToasts().map(({ id, text, action, forMs }) => (
        <div key={id} className="toast">
          <span>{text}</span>
          {action && (
            <>
              <Offer action={action} />
              <span className="toast-time" style={{ animationDuration: `${forMs}ms` }} />
            </>
          )}
        </div>
      ))}
    </div>
  );
}

/** It goes away when it is taken, and when its time is over. */
function Offer({ action }: { action: NonNullable<Toast["action"]> }) {
  const button = useRefocus<HTMLButtonElement>(messageField);
  return (
    <button ref={button} type="button" onClick={action.run}>
      {action.label}
    </button>
  );
}
