// This button opens a short menu. The browser's popover keeps it above everything, and closes it on Esc and on a click
// elsewhere.
import { useId, useRef, useState, type KeyboardEvent, type ReactNode } from "react";

import { Icon } from "./icons";
import "./Menu.css";

type Item = {
  label: string;
  icon?: Parameters<typeof Icon>[0]["name"];
  /** A further fact about the item. */
  detail?: string;
  /** Marks the chosen one of several items. */
  isChosen?: boolean;
  isDanger?: boolean;
  run(): void;
};

type Props = {
  label: string;
  items: Item[];
  /** The button shows these instead of three dots; its menu starts at its beginning. */
  children?: ReactNode;
};

export function Menu({ label, items, children }: Props) {
  const menu = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setIsOpen] = useState(false);
  const id = useId();

  const onToggle = (isNowOpen: boolean) => {
    setIsOpen(isNowOpen);
    if (!isNowOpen || !menu.current || !button.current) return;
    place(menu.current, button.current, children !== undefined);
    const all = entries(menu.current);
    (all.find((entry) => entry.ariaChecked === "true") ?? all[0])?.focus();
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const all = entries(menu.current);
    const step = { ArrowDown: 1, ArrowUp: -1, Tab: 0 }[event.key];
    if (step === undefined || all.length === 0) return;
    if (event.key === "Tab") return menu.current?.hidePopover();
    event.preventDefault();
    const at = all.findIndex((entry) => entry === document.activeElement);
    all[(at + step + all.length) % all.length]?.focus();
  };

  return (
    <>
      <button
        ref={button}
        type="button"
        className={children ? "menu-button" : "icon-button menu-button"}
        aria-label={label}
        title={children ? undefined : label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        popoverTarget={id}
      >
        {children ?? <Icon name="more" />}
      </button>
      <div
        ref={menu}
        id={id}
        className="menu"
        role="menu"
        aria-label={label}
        popover="auto"
        onToggle={(event) => onToggle(event.newState === "open")}
        onKeyDown={onKeyDown}
      >
        {items.map((item, index) => (
          <button
            key={index}
            type="button"
            role={item.isChosen === undefined ? "menuitem" : "menuitemradio"}
            aria-checked={item.isChosen}
            aria-label={item.label}
            aria-describedby={item.detail ? `${id}-${index}` : undefined}
            tabIndex={-1}
            data-danger={item.isDanger || undefined}
            onClick={() => {
              menu.current?.hidePopover();
              item.run();
            }}
          >
            {item.icon && <Icon name={item.icon} />}
            <span className="menu-text" dir="auto">
              <span>{item.label}</span>
              {item.detail && (
                <span id={`${id}-${index}`} className="menu-detail">
                  {item.detail}
                </span>
              )}
            </span>
            {item.isChosen && <Icon name="check" />}
          </button>
        ))}
      </div>
    </>
  );
}

function entries(menu: HTMLElement | null): HTMLElement[] {
  return [...(menu?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
}

/** Puts the menu below the button, its edge at the button's, or above it if the room below is too small. */
function place(menu: HTMLElement, button: HTMLElement, isAtStart: boolean) {
  const at = button.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const isRoomBelow = at.bottom + height + 12 < innerHeight;
  menu.style.top = `${isRoomBelow ? at.bottom + 4 : at.top - height - 4}px`;
  menu.style.left = `${Math.max(8, Math.min(isAtStart ? at.left : at.right - width, innerWidth - width - 8))}px`;
}
