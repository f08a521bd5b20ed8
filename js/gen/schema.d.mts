// Types of schema.mjs for the tests that read schemas.

/** One argument of an operator. */
export interface ParsedArg {
  name: string;
  js: string;
  type: string;
  repeat: number;
  default?: string;
  keywordOnly: boolean;
}

/** One operator. */
export interface ParsedOp {
  id: number;
  name: string;
  js: string;
  schema: string;
  doc: string;
  places: string[];
  row: boolean;
  args: ParsedArg[];
}

export function camelCase(name: string): string;
export function parseOps(entries: unknown): ParsedOp[];
