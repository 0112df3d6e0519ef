// Runs tasks one after the other, in the order of their arrival.

/** Returns a function that runs a task after all tasks before it. A failed task does not stop the later ones. */
export function inOrder(): (task: () => Promise<void>) => void {
  let last: Promise<void> = Promise.resolve();
  return (task) => void (last = last.then(task).catch(() => {}));
}
