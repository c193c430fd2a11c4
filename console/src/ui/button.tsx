import type { JSX } from "preact";

/** A button that does not submit a form. */
export function Button(props: JSX.IntrinsicElements["button"]) {
  return <button type="button" {...props} />;
}

interface SegmentsProps<T> {
  name: string;
  values: readonly T[];
  chosen: T;
  /** The text of a value; the value itself by default. */
  text?: (value: T) => string;
  onChoose: (value: T) => void;
}

/** A choice of one of a few values. */
export function Segments<T>({ name, values, chosen, text = String, onChoose }: SegmentsProps<T>) {
  return (
    <fieldset class="segments">
      <legend class="hidden">{name}</legend>
      {values.map((it) => (
        <Button key={text(it)} aria-pressed={it === chosen} onClick={() => onChoose(it)}>
          {text(it)}
        </Button>
      ))}
    </fieldset>
  );
}
