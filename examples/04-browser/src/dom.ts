// Small helpers to find elements of the page and to read its colours.

/** The element with this id; the page is broken without it. */
export function element<Kind extends HTMLElement = HTMLElement>(id: string): Kind {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element "${id}"`);
  return found as Kind;
}

/** The value of a CSS variable, such as "--ink", where `node` stands. */
export function cssVariable(node: Element, name: string): string {
  return getComputedStyle(node).getPropertyValue(name).trim();
}

/** Calls `change` when the system goes from light to dark or back. */
export function onThemeChange(change: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", change);
}
