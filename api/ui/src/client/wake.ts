// Moments at which a connection that was given up may work again: the network is back, the page is looked at, the laptop
// was opened. Where there is no page (a program, a test), there are none.

/** Calls at each such moment; gives back how to end it. */
export function onWake(listener: (moment: "online" | "visible") => void): () => void {
  if (typeof window === "undefined") return () => {};
  const online = () => listener("online");
  const visible = () => {
    if (document.visibilityState === "visible") listener("visible");
  };
  window.addEventListener("online", online);
  document.addEventListener("visibilitychange", visible);
  return () => {
    window.removeEventListener("online", online);
    document.removeEventListener("visibilitychange", visible);
  };
}
