/** Ways to notify the program: callbacks by kind, an asynchronous iterator, and conditions. */

/** Callbacks by kind. An exception in a callback is reported as uncaught and stops no other one. */
export class Emitter {
  /** @type {Map<string, Set<{ callback: (value: any) => void }>>} */
  #callbacks = new Map();

  /**
   * @param {string} kind
   * @param {(value: any) => void} callback
   * @returns {() => void} removes the callback
   */
  on(kind, callback) {
    const entry = { callback }; // an object of its own: one function may be registered twice
    if (!this.#callbacks.has(kind)) this.#callbacks.set(kind, new Set());
    this.#callbacks.get(kind).add(entry);
    return () => this.#callbacks.get(kind).delete(entry);
  }

  /**
   * @param {string} kind
   * @param {unknown} value
   */
  emit(kind, value) {
    for (const { callback } of [...(this.#callbacks.get(kind) ?? [])]) {
      try {
        callback(value);
      } catch (error) {
        setTimeout(() => { throw error; });
      }
    }
  }
}

/** An asynchronous iterator over the values that are pushed into it. */
export class AsyncQueue {
  /** @type {any[]} */
  #items = [];
  /** @type {{ resolve: (result: any) => void, reject: (error: Error) => void }[]} */
  #readers = [];
  /** @type {{ error: Error | null } | null} */
  #end = null;
  #onReturn;

  /** @param {(queue: AsyncQueue) => void} onReturn called when the consumer stops early */
  constructor(onReturn) {
    this.#onReturn = onReturn;
  }

  push(value) {
    if (this.#readers.length) this.#readers.shift().resolve({ value, done: false });
    else this.#items.push(value);
  }

  /** Stop after the queued items: with `error` if there is one, otherwise as done. */
  end(error) {
    this.#end ??= { error };
    for (const reader of this.#readers.splice(0)) {
      if (error) reader.reject(error);
      else reader.resolve({ value: undefined, done: true });
    }
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async next() {
    if (this.#items.length) return { value: this.#items.shift(), done: false };
    if (this.#end?.error) throw this.#end.error;
    if (this.#end) return { value: undefined, done: true };
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
  }

  async return() {
    this.#onReturn(this);
    this.#items.length = 0;
    this.end(null);
    return { value: undefined, done: true };
  }
}

/** Promises that resolve as soon as their conditions are true. */
export class Waiters {
  /** @type {{ condition: () => unknown, resolve: () => void, reject: (error: Error) => void }[]} */
  #waiters = [];

  /**
   * @param {() => unknown} condition
   * @param {number} [timeout] milliseconds after which the promise is rejected
   * @returns {Promise<void>}
   */
  add(condition, timeout) {
    let timer;
    /** @type {Promise<void>} */
    const promise = new Promise((resolve, reject) => {
      const waiter = { condition, resolve, reject };
      this.#waiters.push(waiter);
      if (timeout === undefined) return;
      timer = setTimeout(() => {
        this.#waiters = this.#waiters.filter((one) => one !== waiter);
        const message = `The condition was not true within ${timeout} ms. A state that has passed`
          + " before the call is not noticed.";
        reject(new DOMException(message, "TimeoutError"));
      }, timeout);
    });
    return promise.finally(() => clearTimeout(timer));
  }

  /** Evaluate the conditions again. */
  wake() {
    for (const waiter of this.#waiters.splice(0)) {
      try {
        if (waiter.condition()) waiter.resolve();
        else this.#waiters.push(waiter);
      } catch (error) {
        waiter.reject(error); // the caller's own condition failed, not the server
      }
    }
  }

  reject(error) {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }
}
