/** What a check-up finds, the worst first, and what to do about each. */
import type { DiagnosisFinding } from "../../model/answers";
import { Badge, Sentence, type Tone } from "../../views/bits";

const TONES: Record<DiagnosisFinding["severity"], Tone> = {
  problem: "bad",
  warning: "warn",
  note: "plain",
};

export function Findings({ findings }: { findings: readonly DiagnosisFinding[] }) {
  return (
    <ul class="findings">
      {findings.map((one) => (
        <li key={one.check + one.sentence}>
          <Badge tone={TONES[one.severity]}>{one.severity}</Badge>
          <div>
            <p>
              <Sentence text={one.sentence} />
            </p>
            <p class="dim">
              <Sentence text={one.advice} />
            </p>
          </div>
          <span class="dim mono spread">{one.check}</span>
        </li>
      ))}
    </ul>
  );
}

/** Say the worst in a few words. */
export function summary(findings: readonly DiagnosisFinding[]): string {
  const count = (severity: DiagnosisFinding["severity"]): number =>
    findings.filter((one) => one.severity === severity).length;
  const parts = (["problem", "warning", "note"] as const)
    .map((severity) => [count(severity), severity] as const)
    .filter(([n]) => n > 0)
    .map(([n, severity]) => `${n} ${severity}${n === 1 ? "" : "s"}`);
  return parts.join(", ");
}
