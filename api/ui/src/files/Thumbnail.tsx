// A small picture of a file, if it is a picture and exists.
import { type ReactNode, useRef } from "react";

import { type FileRef, isPicture } from "../client/files";
import { useAddress } from "./useAddress";

type Props = { file: FileRef; className: string; alt: string; otherwise: ReactNode };

export function Thumbnail(props: Props) {
  return isPicture(props.file) ? <Picture {...props} /> : props.otherwise;
}

function Picture({ file, className, alt, otherwise }: Props) {
  const element = useRef<HTMLImageElement>(null);
  const { address, isDeleted, onError } = useAddress(file, element);
  if (isDeleted) return otherwise;
  return <img ref={element} className={className} src={address} alt={alt} loading="lazy" onError={onError} />;
}
