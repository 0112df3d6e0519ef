// The button that adds files to a message. On a phone it also offers the camera.
import { useRef, useSyncExternalStore, type ChangeEvent } from "react";

import { words } from "../i18n";
import { Icon } from "../shell/controls/icons";
import { Menu } from "../shell/controls/Menu";
import "./AddFiles.css";

const coarse = matchMedia("(pointer: coarse)");

type Props = { onFiles(files: File[]): void; isDisabled?: boolean };

export function AddFiles({ onFiles, isDisabled }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  const camera = useRef<HTMLInputElement>(null);
  const isCoarse = useSyncExternalStore(
    (listener) => {
      coarse.addEventListener("change", listener);
      return () => coarse.removeEventListener("change", listener);
    },
    () => coarse.matches,
  );
  const onChange = ({ target }: ChangeEvent<HTMLInputElement>) => {
    const files = [...(target.files ?? [])];
    // Without this, a file could not be chosen twice.
    target.value = "";
    if (files.length > 0) onFiles(files);
  };
  return (
    <div className="add-files">
      <input ref={picker} type="file" multiple hidden data-files="any" onChange={onChange} />
      {isCoarse && !isDisabled ? (
        <>
          <input ref={camera} type="file" accept="image/*" capture="environment" hidden data-files="camera" onChange={onChange} />
          <Menu
            label={words.files.add}
            items={[
              { label: words.files.photo, icon: "camera", run: () => camera.current?.click() },
              { label: words.files.choose, icon: "attach", run: () => picker.current?.click() },
            ]}
          >
            <Icon name="attach" />
          </Menu>
        </>
      ) : (
        <button type="button" className="icon-button" aria-label={words.files.add} title={words.files.add} disabled={isDisabled} onClick={() => picker.current?.click()}>
          <Icon name="attach" />
        </button>
      )}
    </div>
  );
}
