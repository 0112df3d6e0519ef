// The program of docs/clients.md.
import { Answer, HoldfastClient } from "holdfast-client";

/** Returns the answer to a text. `mayCall` decides about the calls that need an approval. */
export async function ask(baseUrl, text, mayCall) {
  const client = new HoldfastClient({ baseUrl });
  const { run } = await client.startRun({ input: text });
  const answer = new Answer();
  for await (const event of client.events(run.id)) {
    answer.apply(event);
    if (event.type === "approval.requested") {
      const decision = mayCall(event.name, event.input) ? "approve" : "deny";
      await client.decide(run.id, event.approval_id, { decision });
    }
  }
  return answer.text;
}
