// Icons are lines of the text's colour on a grid of 24. A screen reader skips them; the element around them has a name.

/** Returns a component that draws one of these icons. */
export function iconsOf<Name extends string>(paths: Record<Name, string>) {
  return function Icon({ name }: { name: Name }) {
    return (
      <svg className="icon" data-name={name} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
        <path d={paths[name]} />
      </svg>
    );
  };
}
