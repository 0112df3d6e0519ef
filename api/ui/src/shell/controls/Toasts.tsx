// The notices stand here. The region exists before them, so that a screen reader announces new ones.
import { messageField, useRefocus } from "../../refocus";
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

/** The offer disappears when the reader takes it, and when its time is over. */
function Offer({ action }: { action: NonNullable<Toast["action"]> }) {
  const button = useRefocus<HTMLButtonElement>(messageField);
  return (
    <button ref={button} type="button" onClick={action.run}>
      {action.label}
    </button>
  );
}
