/** Time range control: presets, a custom range, zooming out and refreshing. */

import { useState } from "preact/hooks";
import { type Address, changed, go } from "../address";
import { useKeys } from "../keys";
import { Button, Segments } from "../ui/button";
import { Icon } from "../ui/icons";
import { useMenu } from "../ui/menu";
import { fieldOf, formatFull, formatRange } from "./format";
import { PRESETS, type Range, rangeParams, zoomStack } from "./range";

/** The ranges that this tab zoomed through. */
let ranges: Range[] = [];

interface RangeControlProps {
  address: Address;
  range: Range;
  onReload: () => void;
}

export function RangeControl({ address, range, onReload }: RangeControlProps) {
  const { box, close, onKeyDown } = useMenu();
  const isZoomed = range.preset === null;
  const [isInvalid, setInvalid] = useState(false);
  ranges = zoomStack(ranges, range);
  const outer = ranges.at(-2);
  const zoomOut = () => go(changed(address, rangeParams(outer ? (outer.preset ?? outer) : "7d")));
  const target = outer && !outer.preset ? formatRange(outer) : `last ${outer?.preset ?? "7d"}`;
  useKeys({
    Escape: () => {
      if (isZoomed) zoomOut();
    },
    r: onReload,
  });
  return (
    <div class="range">
      <Segments
        name="Time range"
        values={PRESETS}
        chosen={range.preset}
        onChoose={(it) =>
          range.preset === it ? onReload() : go(changed(address, rangeParams(it ?? "7d")))
        }
      />
      <details class={isZoomed ? "menu zoomed" : "menu"} ref={box} onKeyDown={onKeyDown}>
        <summary title={`${formatFull(range.from)}\n–\n${formatFull(range.to)}`}>
          {isZoomed ? formatRange(range) : "Custom"}
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
            const isReversed = !(from < to);
            setInvalid(isReversed);
            if (isReversed) return event.currentTarget.to.focus();
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
              aria-invalid={isInvalid}
              aria-describedby={isInvalid ? "range-error" : undefined}
            />
          </label>
          {isInvalid && (
            <p class="field-error" id="range-error" role="alert">
              The end must be after the start.
            </p>
          )}
          <button type="submit" class="primary">
            Apply
          </button>
        </form>
      </details>
      {isZoomed && (
        <Button
          class="bare"
          title={`Zoom out to ${target} (Esc)`}
          aria-label="Zoom out"
          onClick={zoomOut}
        >
          <Icon name="close" />
        </Button>
      )}
      <Button class="bare" title="Refresh (r)" aria-label="Refresh" onClick={onReload}>
        <Icon name="reload" />
      </Button>
    </div>
  );
}
