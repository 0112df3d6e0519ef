// Where the notices stand. The region is there before them, so that a screen reader hears what comes into it.
import { useToasts } from "./toasts";
import "./Toasts.css";

export function Toasts() {
  return (
    <div className="toasts" role="status">
      {useToasts().map(({ id, text, action, forMs }) => (
        <div key={id} className="toast">
          <span>{text}</span>
          {action && (
            <>
              <button type="button" onClick={action.run}>
                {action.label}
              </button>
              <span className="toast-time" style={{ animationDuration: `${forMs}ms` }} />
            </>
          )}
        </div>
      ))}
    </div>
  );
}
