/** Values that are followed: whoever reads one is run again once it has changed.
 *
 * Readers are effects, computed values, and components while they render. Each remembers what it
 * saw, and is run again only if something it saw is different by then. */
import { type Component, options, type VNode } from "preact";
import { useMemo } from "preact/hooks";

export interface ReadonlySignal<T> {
  /** Reading it makes whoever runs a reader of it. */
  readonly value: T;
  /** The value, without becoming a reader. */
  peek: () => T;
}

export interface Signal<T> extends ReadonlySignal<T> {
  value: T;
}

/** Someone who reads. */
interface Reader {
  /** What was read, and what it was then. */
  seen: Map<Value<unknown>, unknown>;
  /** Whether it wants to hear of changes. */
  isListening: () => boolean;
  wake: () => void;
}

let reader: Reader | null = null;
let isTelling = false;
const due = new Set<Runner>();

/** Note what somebody reads from here on; the function that is given ends it. */
function begin(who: Reader): () => void {
  const [outer, before] = [reader, who.seen];
  who.seen = new Map();
  reader = who;
  return () => {
    reader = outer;
    for (const one of before.keys()) if (!who.seen.has(one)) one.leave(who);
  };
}

function hasChanged(who: Reader): boolean {
  for (const [one, was] of who.seen) if (one.peek() !== was) return true;
  return false;
}

/** A value that is set, or worked out from others. */
class Value<T> implements Signal<T>, Reader {
  seen: Reader["seen"] = new Map();
  private readonly readers = new Set<Reader>();
  private isKnown = false;

  constructor(
    private held: T,
    private readonly work?: () => T,
  ) {}

  get value(): T {
    const now = this.peek();
    if (reader) {
      reader.seen.set(this, now);
      if (reader.isListening()) this.join(reader);
    }
    return now;
  }

  set value(next: T) {
    if (next === this.held) return;
    this.held = next;
    this.wake();
    if (!isTelling) tell();
  }

  peek(): T {
    if (this.work && (!this.isKnown || hasChanged(this))) {
      const end = begin(this);
      try {
        this.held = this.work();
        this.isKnown = true;
      } finally {
        end();
      }
    }
    return this.held;
  }

  /** One that nobody listens to is not listening itself, so that nothing keeps it. */
  isListening(): boolean {
    return this.readers.size > 0;
  }

  join(who: Reader): void {
    const isFirst = !this.isListening();
    this.readers.add(who);
    if (isFirst) for (const one of this.seen.keys()) one.join(this);
  }

  leave(who: Reader): void {
    this.readers.delete(who);
    if (!this.isListening()) for (const one of this.seen.keys()) one.leave(this);
  }

  wake(): void {
    for (const one of this.readers) one.wake();
  }
}

/** A reader that is run when all who may have changed know of it. */
class Runner implements Reader {
  seen: Reader["seen"] = new Map();
  private isOver = false;

  constructor(readonly run: () => void) {}

  isListening(): boolean {
    return !this.isOver;
  }

  wake(): void {
    due.add(this);
  }

  stop(): void {
    this.isOver = true;
    due.delete(this);
    for (const one of this.seen.keys()) one.leave(this);
  }
}

function tell(): void {
  isTelling = true;
  // What is set meanwhile puts its readers at the end.
  for (const one of due) {
    due.delete(one);
    try {
      if (hasChanged(one)) one.run();
    } catch (error) {
      reportError(error); // the others are told all the same
    }
  }
  isTelling = false;
}

export function signal<T>(first: T): Signal<T> {
  return new Value(first);
}

export function computed<T>(work: () => T): ReadonlySignal<T> {
  return new Value(undefined as T, work);
}

/** Run something now, and again whenever what it has read changes; give what ends that. */
export function effect(work: () => void): () => void {
  const runner = new Runner(() => {
    const end = begin(runner);
    try {
      work();
    } finally {
      end();
    }
  });
  runner.run();
  return () => runner.stop();
}

/** A signal of one component. */
export function useSignal<T>(first: T): Signal<T> {
  return useMemo(() => signal(first), []);
}

/** Where components come by: the names are those that Preact has for its own additions. */
type Hooks = Record<"__b" | "__r" | "__e" | "diffed" | "unmount", (...given: unknown[]) => void>;
type Drawn = VNode & { __c?: Component };

const runners = new WeakMap<Component, Runner>();
let endRender: (() => void) | null = null;

function stopReading(): void {
  endRender?.();
  endRender = null;
}

function atHook(name: keyof Hooks, act: (node: Drawn) => void): void {
  const hooks = options as unknown as Hooks;
  const next = hooks[name] as Hooks["__b"] | undefined;
  hooks[name] = (...given) => {
    act(given[0] as Drawn);
    next?.(...given);
  };
}

atHook("__b", stopReading);
atHook("__e", stopReading);
atHook("diffed", stopReading);
atHook("__r", ({ __c: component }) => {
  stopReading();
  if (!component) return;
  let runner = runners.get(component);
  if (!runner) {
    runner = new Runner(() => component.setState({}));
    runners.set(component, runner);
  }
  endRender = begin(runner);
});
atHook("unmount", ({ __c: component }) => {
  if (component) runners.get(component)?.stop();
});
