/** A runner for CopilotKit's runtime. The server has the threads and the runs, so the runtime has nothing to lose. */
import { EventType, type AgentSubscriber, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { Observable } from "rxjs";

import type { ResumableHttpAgent } from "./agent.js";

/**
 * Implements the runtime's `AgentRunner`. A page that leaves ends its stream and not the run. A page that comes back gets the messages
 * of the thread and the rest of the answer, also from another process of the runtime.
 *
 * `agents` are those of the runtime.
 */
export class ResumableRunner {
  /** The agents with a stream of a thread, newest last. The runtime names only the thread when a user stops the answer. */
  private readonly streaming = new Map<string, ResumableHttpAgent[]>();

  constructor(private readonly agents: Record<string, ResumableHttpAgent>) {}

  /** `agent` is the runtime's copy of one of the agents, for this request. Its type is that of the runtime's own packages. */
  run(request: { threadId: string; agent: unknown; input: RunAgentInput }): Observable<BaseEvent> {
    const agent = request.agent as ResumableHttpAgent;
    return this.stream(request.threadId, agent, (subscriber) => agent.runAgent(request.input, subscriber));
  }

  connect(request: { threadId: string; agentId?: string; headers?: Record<string, string> }): Observable<BaseEvent> {
    const agent = this.agent(request.agentId).clone() as ResumableHttpAgent;
    agent.threadId = request.threadId;
    agent.headers = request.headers ?? agent.headers;
    return this.stream(request.threadId, agent, (subscriber) => agent.connectAgent({}, subscriber));
  }

  async isRunning(request: { threadId: string }): Promise<boolean> {
    const run = await this.agentOf(request.threadId).currentRun();
    return run !== undefined && !run.hasEnded;
  }

  async stop(request: { threadId: string }): Promise<boolean> {
    return this.agentOf(request.threadId).cancelRun();
  }

  private agent(id: string | undefined): ResumableHttpAgent {
    const agent = id === undefined ? Object.values(this.agents)[0] : this.agents[id];
    if (!agent) throw new Error(`The runner has no agent ${id}.`);
    return agent;
  }

  /** Returns an agent with the thread, and with the headers of a user who has it open. */
  private agentOf(threadId: string): ResumableHttpAgent {
    const agent = (this.streaming.get(threadId)?.at(-1) ?? this.agent(undefined)).clone() as ResumableHttpAgent;
    agent.threadId = threadId;
    return agent;
  }

  private stream(
    threadId: string,
    agent: ResumableHttpAgent,
    start: (subscriber: AgentSubscriber) => Promise<unknown>,
  ): Observable<BaseEvent> {
    return new Observable<BaseEvent>((observer) => {
      let hasFailed = false;
      const onEvent = ({ event }: { event: BaseEvent }) => {
        hasFailed ||= event.type === EventType.RUN_ERROR;
        observer.next(event);
      };
      this.streaming.set(threadId, [...(this.streaming.get(threadId) ?? []), agent]);
      start({ onEvent }).then(
        () => observer.complete(),
        (error: unknown) => {
          const message = error instanceof Error ? error.message : String(error);
          if (!hasFailed) observer.next({ type: EventType.RUN_ERROR, message } as BaseEvent);
          observer.complete();
        },
      );
      return () => {
        const others = (this.streaming.get(threadId) ?? []).filter((other) => other !== agent);
        if (others.length) this.streaming.set(threadId, others);
        else this.streaming.delete(threadId);
        agent.abortRun();
      };
    });
  }
}
