/** Suggestions of common context attributes. */
export function AttributeNames() {
  return (
    <datalist id="attributes">
      {["email", "country", "plan", "appVersion", "ip", "$now"].map((it) => (
        <option key={it}>{it}</option>
      ))}
    </datalist>
  );
}
