// This hook dictates through the browser's Web Speech API, where it exists. It loads nothing and does not listen until
// the reader turns it on.
import { useCallback, useEffect, useRef, useState } from "react";

import { words } from "../../i18n";
import { showToast } from "../controls/toasts";

/** The page needs this part of `SpeechRecognition`, which TypeScript's DOM types lack. */
interface Recognition {
  lang: string;
  continuous: boolean;
  interimResults: boolean;
  onresult: ((event: { resultIndex: number; results: ArrayLike<{ isFinal: boolean; 0: { transcript: string } }> }) => void) | null;
  onerror: ((event: { error: string }) => void) | null;
  onend: (() => void) | null;
  start(): void;
  stop(): void;
  abort(): void;
}
type Speech = { SpeechRecognition?: new () => Recognition; webkitSpeechRecognition?: new () => Recognition };

/** Returns the reason of a failure, by the error that the browser names. */
function reasonOf(error: string): string {
  const { voice } = words.shell;
  if (!isSecureContext) return voice.insecure;
  return Object.hasOwn(voice.errors, error) ? voice.errors[error]! : voice.failed;
}

export function useVoice(onHeard: (text: string) => void): {
  isPossible: boolean;
  isListening: boolean;
  /** The recognised text that may still change. */
  guess: string;
  toggle(): void;
} {
  const { SpeechRecognition, webkitSpeechRecognition } = window as Speech;
  const Recognizer = SpeechRecognition ?? webkitSpeechRecognition;
  const [isListening, setIsListening] = useState(false);
  const [guess, setGuess] = useState("");
  const current = useRef<Recognition>(undefined);
  const heard = useRef(onHeard);
  useEffect(() => {
    heard.current = onHeard;
  });
  useEffect(() => () => current.current?.abort(), []);

  const toggle = useCallback(() => {
    if (!Recognizer) return;
    if (current.current) return current.current.stop();
    const recognition = new Recognizer();
    recognition.lang = navigator.language;
    recognition.continuous = true;
    recognition.interimResults = true;
    recognition.onresult = ({ resultIndex, results }) => {
      const changed = Array.from(results).slice(resultIndex);
      const final = changed.filter(({ isFinal }) => isFinal).map((result) => result[0].transcript.trim());
      if (final.length > 0) heard.current(final.join(" "));
      setGuess(changed.filter(({ isFinal }) => !isFinal).map((result) => result[0].transcript).join(""));
    };
    recognition.onerror = ({ error }) => {
      if (error === "no-speech" || error === "aborted") return;
      showToast(reasonOf(error));
    };
    recognition.onend = () => {
      current.current = undefined;
      setIsListening(false);
      setGuess("");
    };
    current.current = recognition;
    recognition.start();
    setIsListening(true);
  }, [Recognizer]);

  return { isPossible: Recognizer !== undefined, isListening, guess, toggle };
}
