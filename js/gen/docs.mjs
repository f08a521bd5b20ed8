// Writes docs/ops.md: the table of operators with their schemas and places.

export function emitDocs(ops) {
  const shown = ops
    .filter((op) => !op.places.includes("private"))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const rows = shown.map((op) => {
    const schema = op.schema.replaceAll("|", "\\|");
    return `| \`${op.js}\` | ${op.places.join(", ")} | \`${schema}\` | ${op.doc} |`;
  });
  return `# Operators

Generated from the core's schemas: ${shown.length} operators. Every one runs on \`cpu\`; on \`meta\`
it computes shapes only. The schema gives PyTorch's names; in JavaScript they are camelCase and
optional arguments may be given by position or in one trailing object.

| name | in | schema | what it does |
|---|---|---|---|
${rows.join("\n")}
`;
}
