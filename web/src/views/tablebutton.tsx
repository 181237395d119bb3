/** The switch between a picture and the same numbers as a table. */

export function TableButton(props: {
  /** What the picture shows; the visible word is enough where a panel says it. */
  label?: string;
  isTable: boolean;
  onChange: (isTable: boolean) => void;
  /** The word for the picture. */
  picture?: string;
}) {
  const word = props.isTable ? (props.picture ?? "Chart") : "Table";
  return (
    <button
      class="link spread"
      aria-pressed={props.isTable}
      aria-label={props.label && `${props.label} as a ${word.toLowerCase()}`}
      onClick={() => props.onChange(!props.isTable)}
    >
      {word}
    </button>
  );
}
