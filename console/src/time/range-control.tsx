/** One control for the time: presets, a range of one's own, and the way back from a zoom. */

import { useState } from "preact/hooks";
import { type Address, changed, go } from "../address";
import { useKeys } from "../keys";
import { Icon } from "../ui/icons";
import { useMenu } from "../ui/menu";
import { inFull, rangeInWords } from "./format";
import { PRESETS, type Range, rangeParams, zoomed } from "./range";

/** A time as fields for dates take it: local, to the minute. */
function fieldOf(at: number): string {
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** What was shown before this zoom, in this tab. */
let shown: Range[] = [];

interface RangeControlProps {
  address: Address;
  range: Range;
  onReload: () => void;
}

export function RangeControl({ address, range, onReload }: RangeControlProps) {
  const { box, close, onKeyDown } = useMenu();
  const isZoomed = range.preset === null;
  const [fault, setFault] = useState(false);
  shown = zoomed(shown, range);
  const outer = shown.at(-2);
  const leaveZoom = () => go(changed(address, rangeParams(outer ? (outer.preset ?? outer) : "7d")));
  const leads = `Back to ${outer && !outer.preset ? rangeInWords(outer) : `the last ${outer?.preset ?? "7d"}`}`;
  useKeys({
    Escape: () => {
      if (isZoomed) leaveZoom();
    },
    r: onReload,
  });
  return (
    <div class="range">
      <fieldset class="segments">
        <legend class="hidden">Time range</legend>
        {PRESETS.map((it) => (
          <button
            type="button"
            key={it}
            aria-pressed={range.preset === it}
            onClick={() =>
              range.preset === it ? onReload() : go(changed(address, rangeParams(it)))
            }
          >
            {it}
          </button>
        ))}
      </fieldset>
      <details class={isZoomed ? "menu zoomed" : "menu"} ref={box} onKeyDown={onKeyDown}>
        <summary title={`${inFull(range.from)}\n–\n${inFull(range.to)}`}>
          {isZoomed ? rangeInWords(range) : "Custom"}
        </summary>
        <form
          class="popover"
          onSubmit={(event) => {
            event.preventDefault();
            const fields = new FormData(event.currentTarget);
            const [from, to] = [fields.get("from"), fields.get("to")].map((it) =>
              Date.parse(String(it)),
            );
            if (from === undefined || to === undefined) return;
            const isWrong = !(from < to);
            setFault(isWrong);
            if (isWrong) return event.currentTarget.to.focus();
            close();
            go(changed(address, rangeParams({ from, to })));
          }}
        >
          <label>
            From
            <input type="datetime-local" name="from" required defaultValue={fieldOf(range.from)} />
          </label>
          <label>
            To
            <input
              type="datetime-local"
              name="to"
              required
              defaultValue={fieldOf(range.to)}
              aria-invalid={fault}
              aria-describedby={fault ? "range-fault" : undefined}
            />
          </label>
          {fault && (
            <p class="fault" id="range-fault" role="alert">
              Choose a time after the one above.
            </p>
          )}
          <button type="submit" class="primary">
            Show
          </button>
        </form>
      </details>
      {isZoomed && (
        <button
          type="button"
          class="bare"
          title={`${leads} (Esc)`}
          aria-label="Leave the zoom"
          onClick={leaveZoom}
        >
          <Icon name="close" />
        </button>
      )}
      <button
        type="button"
        class="bare"
        title="Load again (r)"
        aria-label="Load again"
        onClick={onReload}
      >
        <Icon name="reload" />
      </button>
    </div>
  );
}
