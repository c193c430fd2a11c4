/** The cell that selects a row. */
export function SelectCell(props: { title: string; selected: boolean; onToggle: () => void }) {
  return (
    <td>
      <input
        type="checkbox"
        aria-label={`Select ${props.title}`}
        checked={props.selected}
        onChange={props.onToggle}
      />
    </td>
  );
}

/** What a row is about: a name, and more about it in small. */
export function RowTitle(props: { name: string; description: string | null | undefined }) {
  return (
    <span class="row-title">
      <bdi>{props.name}</bdi>
      {props.description && (
        <small>
          <bdi>{props.description}</bdi>
        </small>
      )}
    </span>
  );
}
