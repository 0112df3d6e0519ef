// This switch chooses between the versions of a message: "‹ 2/3 ›".
import { useEffect, useState } from "react";

import type { ChatMessage } from "../chat/message";
import { words } from "../i18n";
import { useRefocus } from "../refocus";
import { Icon } from "./icons";
import type { Actions } from "./useActions";
import { neighbourOf, type Step } from "./versions";

type Props = { message: ChatMessage; restore: Actions["restore"] };

/** Renders nothing for a message of one version. */
export function VersionSwitch(props: Props) {
  const { version } = props.message.metadata ?? {};
  return version && <Switch number={version.number} count={version.count} {...props} />;
}

function Switch({ number, count, message, restore }: Props & { number: number; count: number }) {
  const [pressed, setPressed] = useState<{ step: Step; isFailed: boolean }>();
  useEffect(() => setPressed(undefined), [number]);
  // Another version of an answer is another element, with equal buttons. Versions of a question share their element.
  const group = useRefocus<HTMLDivElement>(() => {
    const { step } = pressed ?? {};
    const id = step && neighbourOf(message, step);
    return id ? document.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"] [data-step=${step}]`) : undefined;
  });
  const go = async (step: Step) => {
    const id = neighbourOf(message, step);
    if (id === undefined || pressed?.isFailed === false) return;
    setPressed({ step, isFailed: false });
    const isFailed = await restore(id).then(() => false, () => true);
    setPressed(isFailed ? { step, isFailed } : undefined);
  };
  const button = (step: Step) => {
    const isFailed = pressed?.step === step && pressed.isFailed;
    const name = isFailed ? words.message.versionFailed : words.message.versionStep[step];
    // The button at an end only looks disabled, because a disabled one loses the focus.
    return (
      <button type="button" className="icon-button" data-step={step} aria-label={name} title={name} aria-disabled={neighbourOf(message, step) === undefined} onClick={() => void go(step)}>
        <Icon name={isFailed ? "cross" : "chevron"} />
      </button>
    );
  };
  const name = words.message.version(number, count);
  return (
    <div className="versions" ref={group} role="group" aria-label={name}>
      {button("previous")}
      <span aria-live="polite">
        <span aria-hidden="true">
          {number}/{count}
        </span>
        <span className="unseen">{name}</span>
      </span>
      {button("next")}
    </div>
  );
}
