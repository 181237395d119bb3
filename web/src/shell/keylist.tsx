/** The list of keys that are in force here, and the switch that turns them off. */
import { signal } from "../state/signals";
import { areKeysOn, knownKeys } from "../state/keys";
import { Dialog } from "./dialog";

const isOpen = signal(false);

export function openKeyList(): void {
  isOpen.value = true;
}

export function KeyDialog() {
  return (
    <Dialog open={isOpen} title="Keys">
      <dl class="keys">
        {knownKeys.value.map((one) => (
          <div key={one.key + one.label}>
            <dt>
              <kbd>{one.key}</kbd>
            </dt>
            <dd>{one.label}</dd>
          </div>
        ))}
      </dl>
      <label class="row">
        <input
          type="checkbox"
          checked={areKeysOn.value === "on"}
          onChange={(event) => {
            areKeysOn.value = event.currentTarget.checked ? "on" : "off";
          }}
        />{" "}
        Keys without Ctrl are on
      </label>
    </Dialog>
  );
}
