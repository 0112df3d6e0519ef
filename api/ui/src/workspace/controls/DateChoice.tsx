// A day, which the reader changes in place. It is a text until the reader wants to change it, because a browser's date
// field is expensive, and a list has one for each row.
import { useRef, useState } from "react";

import { locale } from "../../i18n";
import { texts } from "../../i18n/workspace";
import { isComposing } from "../../isComposing";
import { Icon } from "../../shell/controls/icons";
import { dayOf, dayText } from "../dates";

type Props = {
  label: string;
  /** A time in RFC 3339. */
  value: string | null | undefined;
  /** Whether the day has passed and matters. */
  isLate?: boolean;
  onChoose(day: string | null): void;
};

export function DateChoice({ label, value, isLate = false, onChoose }: Props) {
  const [isOpen, setIsOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  if (isOpen) {
    const close = (day: string) => {
      setIsOpen(false);
      if (day !== dayOf(value)) onChoose(day === "" ? null : day);
      requestAnimationFrame(() => button.current?.focus());
    };
    return <DateField label={label} day={dayOf(value)} onDone={close} />;
  }
  const shown = value ? dayText(value, locale) : texts.noDate;
  return (
    <button ref={button} type="button" className="date-choice" data-late={isLate || undefined} data-empty={value ? undefined : ""} aria-label={`${label}: ${shown}${isLate ? ` (${texts.overdue})` : ""}`} title={label} onClick={() => setIsOpen(true)}>
      {shown}
    </button>
  );
}

/** Enter and leaving the field keep the day; Esc keeps the old one. */
function DateField({ label, day, onDone }: { label: string; day: string; onDone(day: string): void }) {
  const field = useRef<HTMLInputElement>(null);
  const isDone = useRef(false);
  const done = (value: string) => {
    if (isDone.current) return;
    isDone.current = true;
    onDone(value);
  };
  return (
    <span
      className="date-field"
      onBlur={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget)) done(field.current?.value ?? day);
      }}
      onKeyDown={(event) => {
        if (isComposing(event) || (event.key !== "Escape" && !(event.key === "Enter" && event.target === field.current))) return;
        event.preventDefault();
        event.stopPropagation();
        done(event.key === "Enter" ? (field.current?.value ?? day) : day);
      }}
    >
      <input ref={field} className="field" type="date" autoFocus aria-label={label} defaultValue={day} max="9999-12-31" />
      {day !== "" && (
        <button type="button" className="icon-button" aria-label={texts.removeDate} title={texts.removeDate} onClick={() => done("")}>
          <Icon name="close" />
        </button>
      )}
    </span>
  );
}
