/** One of a few: buttons side by side, the chosen one pressed. */

export function Choice<T extends string>(props: {
  label: string;
  options: readonly (readonly [T, string])[];
  chosen: string;
  onChoose: (value: T) => void;
}) {
  return (
    <span class="choice" role="group" aria-label={props.label}>
      {props.options.map(([value, text]) => (
        <button
          key={value}
          aria-pressed={props.chosen === value}
          onClick={() => props.onChoose(value)}
        >
          {text}
        </button>
      ))}
    </span>
  );
}
