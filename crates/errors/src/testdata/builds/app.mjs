// The sources of a small shop in one of its builds. Ten bugs stay; around them modules are added,
// imports change their order, and helpers get more callers.

const BUGS = {
  cart: `import { sum } from './money.js';
export class Cart {
  constructor(items) { this.items = items; }
  total() { return sum(this.items.map((item) => item.price.amount)); }
}
export const run = () => new Cart([{ name: 'tea' }]).total();`,
  checkout: `import { clean } from './text.js';
function validateAddress(address) { return clean(address.postcode.trim()).length > 0 && address.city; }
function submitOrder(order) { const ok = validateAddress(order.address); return ok ? order : null; }
export const run = () => submitOrder({ address: { city: 'Ulm' } });`,
  profile: `import { clean } from './text.js';
function validateAddress(address) { return clean(address.street.trim()).length > 0; }
function saveProfile(form) { return { valid: validateAddress(form.address) }; }
export const run = () => saveProfile({ address: {} });`,
  search: `import { clamp } from './money.js';
function emptyPages(count) { return new Array(count - 2); }
function paginate(results) { return emptyPages(clamp(results.length, 0, 1)); }
export const run = () => paginate([]);`,
  orders: `function findOrder(orders, id) {
  const found = orders.filter((order) => order.id === id);
  if (found.length === 0) throw new Error('Order ' + id + ' is not there');
  return found[0];
}
function openOrder(id) { return findOrder([], id); }
export const run = (build) => openOrder(4711 + build);`,
  catalog: `class CatalogError extends Error { constructor(text) { super(text); this.name = 'CatalogError'; } }
const categories = { list(names) { return names.map(loadCategory); } };
function loadCategory(name) { if (!name) throw new CatalogError('a category has no name'); return { name }; }
export const run = () => categories.list(['tea', '']);`,
  reports: `const parseReport = (text) => JSON.parse(text);
function showReport(text) { const report = parseReport(text); return report.rows; }
export const run = () => showReport('<html>');`,
  settings: `function applySetting(setting, plugins) { return plugins.map((plugin) => plugin.handler(setting)); }
function saveSettings(settings) { return Object.keys(settings).map((key) => applySetting(key, [{}])); }
export const run = () => saveSettings({ theme: 'dark' });`,
  session: `export class SessionClient {
  refresh(token) { if (!token) throw new Error('the session has expired'); return token; }
  open() { return this.refresh(null); }
}
export const run = () => new SessionClient().open();`,
  dashboard: `import { clean } from './text.js';
class Chart { draw(box) { return measure(box) + clean('x'); } }
function measure(box) { return box.canvas.width * 2; }
export const run = () => new Chart().draw({});`,
};

export const ROUTES = Object.keys(BUGS);

// A repeatable sequence of numbers for a seed.
function random(seed) {
  let state = seed * 2654435761 % 4294967296;
  return (below) => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return Math.floor(state / 4294967296 * below);
  };
}

export function sources(build) {
  const next = random(build + 1);
  const files = {
    'money.js': `export function sum(values) { let all = 0; for (const value of values) all += value; return all; }
export function clamp(value, least, most) { return Math.min(most, Math.max(least, value)); }`,
    'text.js': `export function clean(text) { return text.replace(/\\s+/g, ' '); }`,
  };
  for (const [name, code] of Object.entries(BUGS)) {
    files[`${name}.js`] = code + (next(3) === 0 ? `\nconsole.debug('${name}', ${build});` : '');
  }
  // One more module with each build, and other callers of the shared helpers.
  const extras = [];
  for (let index = 0; index < 12 + build; index += 1) {
    const name = `extra${(index * 7 + build) % 97}`;
    if (extras.includes(name)) continue;
    extras.push(name);
    const helper = next(2) ? `import { clean } from './text.js';` : `import { sum, clamp } from './money.js';`;
    const use = helper.includes('clean') ? `clean(label${index})` : `clamp(sum([index, ${build}]), 0, 9)`;
    files[`${name}.js`] = `${helper}
const table${index} = new Map();
function describe${index}(label${index}, index) { return table${index}.get(label${index}) ?? ${use}; }
export function remember${index}(key, value) { table${index}.set(key, describe${index}(String(value), ${index})); }
remember${index}('${name}', ${next(1000)});`;
  }
  const order = [...extras, ...ROUTES];
  for (let index = order.length - 1; index > 0; index -= 1) {
    const other = next(index + 1);
    [order[index], order[other]] = [order[other], order[index]];
  }
  const imports = order.map((name) => ROUTES.includes(name)
    ? `import { run as ${name} } from './${name}.js';` : `import './${name}.js';`);
  files['main.js'] = `${imports.join('\n')}
globalThis.shop = { ${ROUTES.join(', ')} };`;
  return files;
}
