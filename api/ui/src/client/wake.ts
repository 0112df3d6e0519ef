// Moments at which a connection that was given up may work again: the network is back, the page is looked at, the laptop
// was opened. Where there is no page (a program, a test), there are none.

const wishes = new EventTarget();

/** The reader asks for a try now. */
export function wake(): void {
  wishes.dispatchEvent(new Event("wish"));
}

/** Calls at each such moment; gives back how to end it. */
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
