// A wake is a moment at which a failed connection may work again. The network returns, the reader looks at the page, or
// the reader opens the laptop. Without a page, in a program or a test, no wake happens.

const wishes = new EventTarget();

/** The reader asks for a try now. */
export function wake(): void {
  wishes.dispatchEvent(new Event("wish"));
}

/** Calls the listener at each wake; returns a function that stops it. */
export function onWake(listener: (moment: "online" | "visible" | "wish") => void): () => void {
  if (typeof window === "undefined") return () => {};
  const wished = () => listener("wish");
  const online = () => listener("online");
  const visible = () => {
    if (document.visibilityState === "visible") listener("visible");
  };
  wishes.addEventListener("wish", wished);
  window.addEventListener("online", online);
  document.addEventListener("visibilitychange", visible);
  return () => {
    wishes.removeEventListener("wish", wished);
    window.removeEventListener("online", online);
    document.removeEventListener("visibilitychange", visible);
  };
}
