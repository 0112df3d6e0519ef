// This field chooses one of a few values in place. Its options arrive with the pointer or the focus, because a list of
// 2,000 rows with all of their options would be slow.
import { useState } from "react";

import "./fields.css";

type Props<Value extends string> = {
  label: string;
  value: Value;
  options: readonly Value[];
  textOf(value: Value): string;
  /** The look for the style sheet: that of a state, of a priority, or of a plain field. */
  look: "state" | "priority" | "plain";
  onChoose(value: Value): void;
};

export function Choice<Value extends string>({ label, value, options, textOf, look, onChoose }: Props<Value>) {
  const [isNear, setIsNear] = useState(false);
  const come = isNear ? undefined : () => setIsNear(true);
  const shown = isNear ? options : [value];
  return (
    <select
      className={`in-place in-place-${look}`}
      data-value={value}
      aria-label={label}
      title={label}
      value={value}
      onPointerDown={come}
      onPointerEnter={come}
      onFocus={come}
      onChange={(event) => onChoose(event.target.value as Value)}
    >
      {shown.map((option) => (
        <option key={option} value={option}>
          {textOf(option)}
        </option>
      ))}
    </select>
  );
}
