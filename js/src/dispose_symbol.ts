// Symbol.dispose on hosts that lack it; import this before a class that has such a method.
const symbols = Symbol as { dispose?: symbol };
symbols.dispose ??= Symbol.for("Symbol.dispose");
export {};
