// Follows a run with EventSource, in a browser and in Node. EventSource reconnects by itself, and 204 ends it.

/** Calls `apply` with each event, and `over` after the last one. */
export function follow(EventSource, url, apply, over) {
  const source = new EventSource(url);
  const types = `run.queued attempt.started context.usage step.started message.delta reasoning.delta tool_call.delta
    tool_call.started tool_call.completed approval.requested approval.resolved agent.state step.completed
    message.steered subagent.started subagent.completed plan.created plan.updated plan.reviewed plan_step.started
    plan_step.completed question.asked context.shifted focus.changed ontology.loaded template.requested
    template.suggested document.progress context.retrieved citation.added citation.dropped memory.told
    warning.raised message.completed run.completed run.failed run.cancelled`;
  for (const type of types.split(/\s+/)) source.addEventListener(type, (frame) => apply(JSON.parse(frame.data)));
  source.onerror = () => source.readyState === 2 && over();
}
