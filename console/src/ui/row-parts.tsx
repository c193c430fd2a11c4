/** A table cell with the row's checkbox. */
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

/** A row's name and description. */
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
