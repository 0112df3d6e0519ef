// The pictures of the documentation. Their content comes from this file and not from a server, so it does not change.
const NOW = Date.now();
const at = (minutes) => new Date(NOW - minutes * 60_000).toISOString();
const ID = "01a20000-0000-7000-8000-000000000001";
const RUN = "01a20000-0000-7000-8000-00000000000a";

const conversation = (id, title, minutes) => ({
  id,
  title,
  agent_id: null,
  live_run_id: null,
  forked_from: null,
  created_at: at(minutes),
  last_message_at: at(minutes),
});
const conversations = [
  [ID, "Harbour report", 1],
  ["2", "Which database for a small team?", 190],
  ["3", "A note that moves our meeting", 1_500],
  ["4", "How tides work", 1_700],
  ["5", "Questions before signing a rental contract", 5_900],
  ["6", "Release notes for version 2", 8_800],
  ["7", "Translate the welcome letter", 30_000],
].map(([id, title, minutes]) => conversation(id, title, minutes));

const TEXT = `Three ships came in today, and the harbour was **calm** until the afternoon. The numbers, with yesterday's beside them:

| Ship | Arrived | Containers | Yesterday |
|---|---|---:|---:|
| Aurora | 08:10 | 412 | 398 |
| Meltemi | 11:45 | 1,204 | – |
| Sirocco | 16:30 | 87 | 640 |

The Sirocco was late because of the wind; the pilots' log has the details. To count only what was unloaded:

\`\`\`sql
select ship, sum(containers) as unloaded
from arrivals
where day = current_date and direction = 'in'
group by ship order by unloaded desc;
\`\`\``;

const said = (id, text, minutes) => ({ id, role: "user", parts: [{ type: "text", text }], metadata: { createdAt: at(minutes) } });
const call = (toolCallId, toolName, input, more) => ({ type: "dynamic-tool", toolCallId, toolName, input, ...more });
const answer = (id, parts, minutes, more) => ({ id, role: "assistant", parts, metadata: { runId: RUN, conversationId: ID, createdAt: at(minutes), ...more } });

const messages = [
  said("m1", "How was the day at the harbour? Compare it with yesterday.", 3),
  answer(
    "m2",
    [
      { type: "reasoning", text: "The arrivals are in the harbour's database; the reasons for delays in the pilots' log.", state: "done" },
      call("c1", "harbour__arrivals", { day: "today", compare: "yesterday" }, { providerExecuted: true, state: "output-available", output: "Aurora 412, Meltemi 1204, Sirocco 87" }),
      { type: "data-call", data: { toolCallId: "c1", durationMs: 340 } },
      call("c2", "harbour__pilots_log", { day: "today" }, { providerExecuted: true, state: "output-available", output: "16:30 Sirocco, two hours late: wind" }),
      { type: "data-call", data: { toolCallId: "c2", durationMs: 1_270 } },
      { type: "text", text: TEXT, state: "done" },
    ],
    2,
    { status: "completed", usage: { input_tokens: 10, output_tokens: 10, cached_tokens: 0, reasoning_tokens: 0 } },
  ),
  said("m3", "Send it to the port authority.", 1),
  answer(
    "m4",
    [
      { type: "text", text: "The report is ready. Nothing is sent before you agree.", state: "done" },
      call("c3", "mail__send", { to: "office@port-authority.example", subject: "Harbour report" }, { state: "approval-requested", approval: { id: "a1" } }),
    ],
    1,
  ),
];

async function prepared(context) {
  const json = (value) => (route) => route.fulfill({ json: value });
  await context.route("**/v1/conversations?**", json({ items: conversations, next: null }));
  await context.route("**/v1/conversations", json({ items: conversations, next: null }));
  await context.route(`**/v1/conversations/${ID}`, json(conversations[0]));
  await context.route(`**/api/chat/${ID}/messages`, json(messages));
  await context.route("**/v1/runs**", json({ items: [], next: null }));
  await context.route("**/v1/runs/**", json({ id: RUN, conversation_id: ID, status: "waiting", error: null }));
}

/** Light and dark, on a desk and on a phone, into `folder`. */
export async function takes_pictures({ person, given }) {
  const desk = { width: 1280, height: 1220, deviceScaleFactor: 1 };
  const phone = { width: 390, height: 800, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
  const shots = [
    ["chat-light", { ...desk, colorScheme: "light" }, `/c/${ID}`],
    ["chat-dark", { ...desk, colorScheme: "dark" }, `/c/${ID}`],
    ["chat-phone", { ...phone, colorScheme: "light" }, `/c/${ID}`],
    ["chat-new", { ...desk, colorScheme: "light" }, "/"],
  ];
  for (const [name, options, path] of shots) {
    const me = await person(options);
    await prepared(me.context);
    const tab = await me.open(path);
    if (path === "/") await tab.text("What would you like to find out?").waitFor();
    else await tab.button("Approve").waitFor();
    if (!options.isMobile) await tab.list.getByRole("link", { name: "Harbour report" }).waitFor();
    await tab.page.mouse.move(0, 0);
    await tab.page.evaluate(() => Promise.all([document.fonts.ready, ...document.getAnimations().map(({ finished }) => Promise.race([finished, new Promise((over) => setTimeout(over, 1_000))]))]));
    await tab.page.screenshot({ path: `${given.folder}/${name}.png` });
  }
}
