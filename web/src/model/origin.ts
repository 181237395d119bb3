/** Where a run's records come from. */
import type { Overview } from "./answers";

/** Whether all of a run was read from another tool's files: nothing in it lives or can be asked. */
export function isImported({ processes }: Pick<Overview, "processes">): boolean {
  return processes.length > 0 && processes.every((one) => one.status === "imported");
}
