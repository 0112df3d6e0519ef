// `useChat` for a page that outlives its connections.
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { useEffect } from "react";

import { patiently, wasCutOff } from "./patiently.mjs";

/** `useChat` that resumes an answer after a broken connection. */
export function useResumedChat({ api, body, ...options }) {
  const chat = useChat({ transport: new DefaultChatTransport({ api, body, fetch: patiently }), ...options });
  const { error, clearError, resumeStream } = chat;
  useEffect(() => {
    if (!wasCutOff(error)) return;
    const again = setTimeout(() => (clearError(), resumeStream()), 100);
    return () => clearTimeout(again);
  }, [error]);
  return chat;
}
