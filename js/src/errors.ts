// The typed errors that Cresset throws, and the place that turns a native status into one.

/** Base class of every error that Cresset throws on purpose. */
export class CressetError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.className;
  }

  /** The name shown in stack traces, given apart from the class so that minifiers keep it. */
  static className = "CressetError";
}

/** Sizes, ranks or strides that do not fit the operator. */
export class ShapeError extends CressetError {
  static override className = "ShapeError";
}

/** A data type that the operator does not accept. */
export class DTypeError extends CressetError {
  static override className = "DTypeError";
}

/** A device that is missing, or tensors on different devices. */
export class DeviceError extends CressetError {
  static override className = "DeviceError";
}

/** An index or dimension out of range. */
export class IndexError extends CressetError {
  static override className = "IndexError";
}

/** An argument of the right type with a value that is not allowed. */
export class ValueError extends CressetError {
  static override className = "ValueError";
}

/** An argument of the wrong kind; the underscore keeps it apart from JavaScript's own class. */
export class TypeError_ extends CressetError {
  static override className = "TypeError";
}

/** A misuse of automatic differentiation, such as changing a tensor that backward still needs. */
export class AutogradError extends CressetError {
  static override className = "AutogradError";
}

/** A device or the host could not provide the memory asked for. */
export class OutOfMemoryError extends CressetError {
  static override className = "OutOfMemoryError";
}

/** A feature that Cresset does not have, or not for this device or data type. */
export class NotImplementedError extends CressetError {
  static override className = "NotImplementedError";
}

/** A fault of Cresset itself. */
export class InternalError extends CressetError {
  static override className = "InternalError";
}

/** Error classes by native status; the order is that of `ErrorKind` in the core. */
const classes = [
  ShapeError,
  DTypeError,
  DeviceError,
  IndexError,
  ValueError,
  TypeError_,
  AutogradError,
  OutOfMemoryError,
  NotImplementedError,
  InternalError,
] as const;

// The core names operators as PyTorch does; users know them in camelCase.
const leadingNames = /^([a-z][a-z0-9_]*: )+/;
const camelCase = (names: string): string =>
  names.replace(/([a-z0-9])_([a-z0-9])/g, (_, a: string, b: string) => a + b.toUpperCase());

/** Makes the error for a native status `kind`; an unknown kind is an `InternalError`. */
export function errorFor(kind: number, message: string): CressetError {
  const ErrorClass = classes[kind] ?? InternalError;
  return new ErrorClass(message.replace(leadingNames, camelCase));
}
