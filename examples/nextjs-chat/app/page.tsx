import { Chat } from "./chat";

/** The chat's name in the address, so that a reload shows this chat again. */
export default async function Page({ searchParams }: { searchParams: Promise<{ chat?: string }> }) {
  const { chat = "first" } = await searchParams;
  return <Chat id={chat} />;
}
