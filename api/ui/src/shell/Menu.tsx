// A button that opens a short menu. The browser's popover keeps it above everything, closes it on Esc and on a click elsewhere.
import { useId, useRef, useState, type KeyboardEvent } from "react";

import { Icon } from "./icons";
import "./Menu.css";

type Item = { label: string; icon: Parameters<typeof Icon>[0]["name"]; isDanger?: boolean; run(): void };

export function Menu({ label, items }: { label: string; items: Item[] }) {
  const menu = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setIsOpen] = useState(false);
  const id = useId();

  const onToggle = (isNowOpen: boolean) => {
    setIsOpen(isNowOpen);
    if (!isNowOpen || !menu.current || !button.current) return;
    place(menu.current, button.current);
    entries(menu.current)[0]?.focus();
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
        className="icon-button menu-button"
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        popoverTarget={id}
      >
        <Icon name="more" />
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
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            tabIndex={-1}
            data-danger={item.isDanger || undefined}
            onClick={() => {
              menu.current?.hidePopover();
              item.run();
            }}
          >
            <Icon name={item.icon} />
            {item.label}
          </button>
        ))}
      </div>
    </>
  );
}

function entries(menu: HTMLElement | null): HTMLElement[] {
  return [...(menu?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
}

/** Below the button, its edge at the button's; above it where there is no room. */
function place(menu: HTMLElement, button: HTMLElement) {
  const at = button.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const isRoomBelow = at.bottom + height + 12 < innerHeight;
  menu.style.top = `${isRoomBelow ? at.bottom + 4 : at.top - height - 4}px`;
  menu.style.left = `${Math.max(8, Math.min(at.right - width, innerWidth - width - 8))}px`;
}
