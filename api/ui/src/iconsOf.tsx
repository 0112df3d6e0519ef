// Icons: lines of the text's colour on a grid of 24. They say nothing to a screen reader; what they stand on has a name.

/** A component that draws whichever of these. */
export function iconsOf<Name extends string>(paths: Record<Name, string>) {
  return function Icon({ name }: { name: Name }) {
    return (
      <svg className="icon" data-name={name} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
        <path d={paths[name]} />
      </svg>
    );
  };
}
