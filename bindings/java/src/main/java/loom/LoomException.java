package loom;

/** One line: what, where, what to do; and its code. */
public final class LoomException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The kind of the failure. */
  public final Types.Code code;

  LoomException(Types.Code code, String message) {
    super(message);
    this.code = code;
  }

  static LoomException invalid(String message) {
    return new LoomException(Types.Code.INVALID_ARGUMENT, message);
  }
}
