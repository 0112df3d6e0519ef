// The address at which the browser finds a file. A request of an image has no header for the reader's token, so with a
// token the page fetches the bytes itself.
import { type RefObject, useEffect, useRef, useState } from "react";

import { type FileRef, addressOf, isThere, readFile } from "../client/files";
import { token } from "../client/token";
import { previewOf } from "./previews";

export interface Found {
  /** Without an address, the page has not read the file yet. */
  address?: string;
  isDeleted: boolean;
  /** The browser could not show the file. */
  onError(): void;
}

const MOST_TRIES = 3;
const TRY_AFTER_MS = 1_000;

/** Reads the file when the element comes into sight. */
export function useAddress(file: FileRef, element: RefObject<Element | null>): Found {
  const [isDeleted, setDeleted] = useState(false);
  const tries = useRef(0);
  const [address, setAddress] = useState(() => previewOf(file.id) ?? (token() === undefined ? addressOf(file) : undefined));
  const { id } = file;
  useEffect(() => {
    if (address !== undefined || !element.current) return;
    let url: string | undefined;
    let isOver = false;
    const read = async () => {
      try {
        const bytes = await readFile(file);
        if (isOver) return;
        url = URL.createObjectURL(bytes);
        setAddress(url);
      } catch {
        if (!(await isThere(file)) && !isOver) setDeleted(true);
      }
    };
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry?.isIntersecting) return;
      observer.disconnect();
      void read();
    });
    observer.observe(element.current);
    return () => {
      isOver = true;
      observer.disconnect();
      if (url) URL.revokeObjectURL(url);
    };
  }, [id, element]);
  const onError = () => {
    void isThere(file).then((there) => {
      if (!there) return setDeleted(true);
      // A busy server may refuse a picture for a moment, and the browser may have freed the local one.
      if (tries.current >= MOST_TRIES || token() !== undefined) return;
      tries.current += 1;
      setTimeout(() => setAddress(`${addressOf(file)}?try=${tries.current}`), TRY_AFTER_MS * tries.current);
    });
  };
  return { address, isDeleted, onError };
}

/** Whether the server has deleted a file that the page does not show. */
export function useDeleted(file: FileRef): boolean {
  const [isDeleted, setDeleted] = useState(false);
  useEffect(() => {
    let isOver = false;
    void isThere(file).then((there) => isOver || setDeleted(!there));
    return () => {
      isOver = true;
    };
  }, [file.id]);
  return isDeleted;
}
