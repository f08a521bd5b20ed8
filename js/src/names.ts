// Gives classes the names that they are exported under: minifiers rename them, and messages and
// printed modules show the names.

/** Names the classes of namespaces; a class that has one of its exported names keeps it. */
export function nameClasses(...namespaces: object[]): void {
  for (const namespace of namespaces) {
    const exported = namespace as Record<string, unknown>;
    for (const [name, value] of Object.entries(exported)) {
      if (typeof value !== "function" || !/^[A-Z]/.test(name)) continue;
      if (exported[value.name] !== value) Object.defineProperty(value, "name", { value: name });
    }
  }
}
