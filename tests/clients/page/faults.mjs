// Answers that are streamed, whatever breaks meanwhile.

/** One question and its answer. */
export async function streams({ person, given, reach }) {
  const tab = await (await person()).open();
  await tab.say(given.text);
  await tab.reads(20);
  reach("answering");
  await tab.readsToTheEnd();
  return { shown: await tab.shown(), conversation: await tab.conversation() };
}
