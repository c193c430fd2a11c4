/** Line icons, 16 units wide, in the color of the surrounding text. */

const PATHS = {
  overview: "M2 12.5 6 8l3 2.5L14 4M2 14.5h12",
  account:
    "M8 2.2a2.9 2.9 0 1 0 0 5.8 2.9 2.9 0 0 0 0-5.8zM2.5 14c.4-2.6 2.7-4.2 5.5-4.2s5.1 1.6 5.5 4.2",
  errors: "M8 2.2 14.6 13.5H1.4zM8 6.4v3.4M8 11.4v.4",
  flags: "M3.5 14.5v-13M3.5 2.5h9l-2.2 3 2.2 3h-9",
  insights:
    "M8 3.5c3.6 0 6.3 4.5 6.3 4.5S11.6 12.5 8 12.5 1.7 8 1.7 8 4.4 3.5 8 3.5zM8 6.3a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4z",
  markers: "M4 1.5v13M8.5 4.5v10M13 2.5v12M2.5 3.5h3M7 6.5h3M11.5 4.5h3",
  settings: "M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M10.5 3v3M5.5 10v3",
  close: "m4 4 8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  check: "m3 8.5 3.2 3.2L13 4.8",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  left: "m10 3.5-4.5 4.5L10 12.5",
  right: "m6 3.5 4.5 4.5L6 12.5",
  up: "m3.5 10 4.5-4.5 4.5 4.5",
  down: "m3.5 6 4.5 4.5L12.5 6",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.5 3.5",
  reload: "M13.5 8A5.5 5.5 0 1 1 11.6 3.8M12 1.5v2.8H9.2",
  keyboard: "M1.5 4h13v8h-13zM4 6.5h.5M7.5 6.5H8M11 6.5h.5M5 9.5h6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
