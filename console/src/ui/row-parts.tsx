import type { Rows } from "./rows";

interface SelectCellProps {
  title: string;
  selected: boolean;
  /** `toLast` is `true` for a click with Shift. */
  onToggle: (toLast: boolean) => void;
}

/** A table cell with the row's checkbox. */
export function SelectCell(props: SelectCellProps) {
  return (
    <td>
      <input
        type="checkbox"
        aria-label={`Select ${props.title}`}
        checked={props.selected}
        onClick={(event) => props.onToggle(event.shiftKey)}
      />
    </td>
  );
}

/** The head of the cells with checkboxes. */
export function SelectAll({ rows, ids }: { rows: Rows; ids: string[] }) {
  return (
    <th>
      <input
        type="checkbox"
        aria-label="Select all"
        checked={rows.selected.size > 0 && rows.selected.size === ids.length}
        onChange={(event) => (event.currentTarget.checked ? rows.selectAll(ids) : rows.clear())}
      />
    </th>
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
