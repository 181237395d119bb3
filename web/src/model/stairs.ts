/** Which sessions of a step can be drawn on its time. */
import type { Staircase } from "./answers";

/** Leave out those that ran wholly before the step or after it.
 *
 * A step may consume what was rolled out before it began: such rows would all lie on its edge.
 */
export function rowsWithin({ start_ns, end_ns, rows }: Staircase): Staircase["rows"] {
  return rows.filter((row) => row.end_ns > start_ns && row.start_ns < end_ns);
}
