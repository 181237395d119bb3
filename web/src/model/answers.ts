// Written by scripts/write-types from the answers' structs; do not edit.

/** One try at the same sample. */
export interface Attempt {
  session_id: string;
  attempt: number;
  start_ns: number;
  end_ns: number | null;
  status: string;
  outcome: string | null;
  reason: string | null;
  host: string;
  /** Whether it is the session that was asked about. */
  is_this: boolean;
  /** The first to fail first; at most twenty. */
  errors: AttemptError[];
}

/** A span that failed during an attempt. */
export interface AttemptError {
  span_id: string;
  name: string;
  detail: string | null;
  reason: string | null;
  /** When it ended. */
  time_ns: number;
}

/** Where an open session was last seen waiting. */
export interface AwaitLine {
  span_id: string;
  /** When the picture was taken. */
  time_ns: number;
  /** Its innermost line outside of the standard library. */
  frame: string;
  /** Other open sessions whose last picture ends in the same line. */
  others_on_line: number;
  /** One of them. */
  example_session: string | null;
}

/** Something that limits how far the numbers can be trusted. */
export interface Badge {
  /** `dropped`, `silent`, `clock`, `missing`, `lost` or `files`. */
  kind: string;
  sentence: string;
}

/** One cause. */
export interface CaseFinding {
  rule: string;
  /** Wall time that would be won at most. */
  stake_ns: number;
  sentence: string;
  evidence: Evidence;
  /** One thing to try. */
  try_next: string;
}

/** A shift of one series. */
export interface Change {
  series: string;
  /** The first step beyond half of the shift. */
  step: number;
  /** The median of the ten steps before. */
  before: number;
  /** The median of the five steps in which it was noticed. */
  after: number;
  /** The shift as a share of the larger of the two levels, so that series can be compared. */
  size: number;
}

/** All shifts, by step, and the few that matter most. */
export interface Changes {
  marks: Change[];
  largest: Change[];
}

/** What one session is charged with. */
export interface Charge {
  session_id: string;
  charge_ns: number;
}

/** The state of a run. */
export interface Checkup {
  run: string;
  processes: number;
  alive: number;
  /** How many of the processes files of another tool tell of. */
  imported: number;
  spans: number;
  sealed_spans: number;
  segments: number;
  /** Bytes of segments that were read whole. */
  checked_bytes: number;
  free_bytes: number;
  findings: DiagnosisFinding[];
}

/** The clock of one host, as compared with the receiver's or else with the first one. */
export interface ClockLine {
  host: string;
  /** How far its times are moved now. */
  offset_ns: number;
  /** Half the width of the range that the correction may lie in; None if only one end is known. */
  error_ns: number | null;
  /** How fast it falls behind, in millionths; less than 0 if it runs ahead. */
  drift_ppm: number;
  /** How often the clocks of its processes were read against the receiver's. */
  readings: number;
  /** How the correction was found: by `round trips`, by the `order of records`, or not at all. */
  source: string;
}

/** A selection of sessions against the rest. */
export interface CompareSelection {
  chosen: number;
  rest: number;
  /** The rest first, the chosen ones second. */
  phases: PhaseComparison[];
  differences: Differences;
}

/** Two sides, phase by phase. */
export interface Comparison {
  first: string;
  second: string;
  first_sessions: number;
  second_sessions: number;
  phases: PhaseComparison[];
  /** Phases of which not all values were taken. */
  sampled: string[];
}

/** How complete the run is as it was recorded. */
export interface Completeness {
  sessions_known: number;
  /** Where the run's tag `sessions` declares how many there will be. */
  sessions_expected: number | null;
  records_dropped: number;
  missing_frames: number;
  /** Processes that should live but are not heard of. */
  silent: string[];
  /** How far the clocks of hosts are apart. */
  clock_spread_ns: number;
  /** How wrong positions may still be after times were moved. */
  clock_error_ns: number;
  /** What is wrong with the files of the run. */
  problems: string[];
  badges: Badge[];
}

/** The path; the segments tile the step exactly, in order. */
export interface CriticalPath {
  wall_ns: number;
  segments: Segment[];
  /** By name, the largest first and `other` last; they add up to `wall_ns`. */
  totals: Record<string, number>;
  /** How often the path leads from one span to another that is not inside of it. */
  hops: number;
  inferred_hops: number;
  slack: Slack | null;
}

/** A tenth of the sessions that are over, by rank. */
export interface Decile {
  /** The largest value in it. */
  upto: number;
  consumed: number;
  discarded: number;
  /** Of consumed ones; None if equal values leave it empty. */
  share: number | null;
}

/** One thing that is not as it should be. */
export interface DiagnosisFinding {
  severity: "problem" | "warning" | "note";
  /** Which check found it. */
  check: string;
  sentence: string;
  advice: string;
}

/** One attribute in which the chosen sessions stand out. */
export interface Difference {
  column: string;
  /** Which value they share; None where a number tends to be larger or smaller. */
  value: string | null;
  /** Share of the chosen with the value, or the median of their numbers. */
  chosen: number;
  rest: number;
  /** Chosen sessions that the comparison rests on. */
  chosen_count: number;
  rest_count: number;
  /** Difference of the shares, or Cliff's delta. */
  effect: number;
  p: number;
  q: number;
  /** Other attributes that split the sessions in the same way. */
  alike: string[];
  text: string;
}

/** What is different about some sessions. */
export interface Differences {
  chosen_count: number;
  rest_count: number;
  is_enough: boolean;
  /** Attributes tested. */
  columns: number;
  /** Tests made; an attribute has one for each value with enough support. */
  tests: number;
  /** Fewer than five tasks among the chosen, and samples of one task are not independent. */
  is_few_tasks: boolean;
  rows: Difference[];
  /** Where the time went; not tested, since time is mostly what they were chosen by. */
  phases: PhaseDifference[];
  text: string;
}

/** What the run takes, and what is left. */
export interface DiskUse {
  run_bytes: number;
  log_bytes: number;
  segment_bytes: number;
  payload_bytes: number;
  free_bytes: number;
  total_bytes: number;
  segments: number;
  /** Since when spans are kept; older ones were retired. */
  oldest_ns: number | null;
}

/** What one process had to drop for one reason. */
export interface DropLine {
  process: string;
  title: string;
  /** Which records, such as `span` or `payload`. */
  kind: string;
  /** Why, such as `overload`. */
  reason: string;
  count: number;
}

/** Lengths of a scope's sessions and of their phases. */
export interface Durations {
  scope: string;
  heat: HeatMap;
  /** Of the histograms: logarithmic, eight bins to a decade. */
  length_edges_ns: number[];
  /** Sessions first, then phases by total time, the most first. */
  histograms: LengthHistogram[];
  points: Points;
  /** p50, p95 and p99 of the sessions, as far as there are enough. */
  lines: LengthLine[];
}

/** All replicas over the same time, by name. */
export interface EngineHistory {
  /** When each stretch of time begins. */
  positions: number[];
  width_ns: number;
  lines: EngineLine[];
  /** Replicas beyond the first few. */
  left_out: number;
}

/** One replica; each list has a value for each position, None where nothing was said. */
export interface EngineLine {
  replica: string;
  /** Share of the key-value cache in use. */
  kv_use: (number | null)[];
  running: (number | null)[];
  waiting: (number | null)[];
  /** Requests put off within the stretch of time. */
  preempted: (number | null)[];
  /** Share of looked-up prompt tokens that were cached. */
  prefix_hits: (number | null)[];
  tokens_per_s: (number | null)[];
}

/** A part of what an engine did for one generation. */
export interface EngineTime {
  /** The generation. */
  span_id: string;
  /** `queue`, `prefill` or `decode`. */
  name: string;
  start_ns: number;
  end_ns: number | null;
  /** Whether it is placed by lengths that the generation tells; else it is a span of its own. */
  is_derived: boolean;
}

/** One kind of error. */
export interface ErrorKind {
  /** What precedes the colon of the reason. */
  kind: string;
  /** The phase, span or session it ended. */
  name: string;
  count: number;
  first_ns: number;
  last_ns: number;
  first_step: number | null;
  /** A whole reason. */
  example: string;
  /** The span that ended so first. */
  example_id: string;
  example_session: string | null;
}

/** One kind of error at one place. */
export interface ErrorLine {
  /** What precedes the colon of the reason. */
  kind: string;
  /** The phase, span or session that it ended. */
  name: string;
  count: number;
  first_ns: number;
  last_ns: number;
  first_step: number | null;
  /** The latest reason, up to 500 characters of it. */
  example: string;
  /** The span that ended so last. */
  example_id: string;
  example_session: string | null;
}

/** One kind of error, step by step. */
export interface ErrorStrip {
  /** What precedes the colon of the reason. */
  kind: string;
  /** The phase, span or session that it ended. */
  name: string;
  /** One for each step. */
  counts: number[];
  total: number;
  /** Where it came up first, in the whole run. */
  first_step: number;
}

/** Spans that ended in an error. */
export interface ErrorTile {
  /** In the last five minutes. */
  recent: number;
  window_ns: number;
  /** Over the whole run. */
  run_per_minute: number;
  spark: number[];
}

/** Kinds of errors, the most frequent first. */
export interface Errors {
  /** Only those that came later were looked at. */
  since_ns: number | null;
  /** Spans that ended in an error, of every kind. */
  total: number;
  /** How many kinds there are; not all may be listed. */
  kinds: number;
  lines: ErrorLine[];
}

/** When the step will end. */
export interface Eta {
  /** How many lengths of sessions it is drawn from. */
  known: number;
  /** Sessions of the step in flight. */
  open: number;
  /** Sessions of the step that have yet to start. */
  waiting: number;
  /** When its last session will end; None if there is nothing to draw from. */
  last_end: Range | null;
  /** When 95 % of its sessions will have ended. */
  p95_end: Range | null;
  /** When the step will end: its last session, then training and sync as usual. */
  step_end: Range | null;
  /** How much longer the step takes at least, by the sessions that are left out. */
  at_least_ns: number | null;
  /** Sessions older than anything seen, left out. */
  outliers: string[];
}

/** Something that happened at one moment. */
export interface EventDetail {
  name: string;
  time_ns: number;
  attrs: Record<string, unknown>;
}

/** What a finding is about, so that it can be opened. */
export interface Evidence {
  sessions: string[];
  pool: string | null;
  process: string | null;
  host: string | null;
  phase: string | null;
  detail: string | null;
}

/** The values of one field, the most frequent first; steps and attempts in their order. */
export interface Facet {
  field: string;
  values: FacetValue[];
  /** How many more values there are. */
  others: number;
}

/** One value of a field. */
export interface FacetValue {
  /** None for sessions that have none. */
  value: string | null;
  count: number;
  /** The condition that keeps only these sessions, as a filter writes it. */
  term: string;
}

/** Counts under a filter. */
export interface Facets {
  scope: string;
  /** Sessions of the scope. */
  of: number;
  /** Those that the filter lets through. */
  matched: number;
  facets: Facet[];
  /** Only where the filter lets nothing through. */
  terms: TermEffect[];
}

/** What closes the sum: all self times are `session_ns` and `overlap_ns` together. */
export interface Footer {
  /** The time of all sessions. */
  session_ns: number;
  /** The self time of all rows below sessions. */
  children_ns: number;
  /** Session time outside of any child. */
  other_ns: number;
  /** What counts more than once, for spans that overlap or outlive what they lie in. */
  overlap_ns: number;
}

/** One group. */
export interface GroupLine {
  group: string;
  task_key: string | null;
  step: number | null;
  members: number;
  /** Members and earlier tries of them. */
  tries: number;
  /** Members that have a reward. */
  rewarded: number;
  mean_reward: number | null;
  /** The standard deviation of the rewards. */
  spread: number | null;
  /** Whether all members have the same reward, so that none is better than another. */
  is_equal: boolean;
  /** Whether a member has no reward, or there are fewer members than usual. */
  is_incomplete: boolean;
  /** Of the members that were measured. */
  median_ns: number | null;
  slowest_ns: number | null;
  /** The slowest against the median; None with fewer than two. */
  ratio: number | null;
  /** The slowest member. */
  session_id: string;
}

/** Some groups, and how many there are of which sort. */
export interface Groups {
  scope: string;
  groups: GroupLine[];
  of: number;
  /** How many members most groups have. */
  usual_members: number;
  /** Groups whose members all have the same reward. */
  equal: number;
  incomplete: number;
  /** Of the groups that are complete. */
  equal_share: number;
  /** The slowest member against the median one, in the median group. */
  ratio_p50: number | null;
}

/** Whether the run can be trusted. */
export interface Health {
  now_ns: number;
  is_alive: boolean;
  ingest: IngestTotal;
  processes: IngestLine[];
  drops: DropLine[];
  /** How full each process's buffer was when it last said so, by title. */
  buffer_fill: Record<string, number>;
  clocks: ClockLine[];
  clock_spread_ns: number;
  /** Bytes at the end of logs that are no whole frame. */
  torn_logs: Record<string, number>;
  /** Bytes of logs that cannot be read. */
  damaged_logs: Record<string, number>;
  loops: LoopLine[];
  disk: DiskUse;
  /** What a check-up finds, the worst first. */
  findings: DiagnosisFinding[];
  /** Of the segments that this Rollscope writes. */
  schema: number;
  /** Of the Rollscope that reads. */
  version: string;
  recorded_with: string[];
  pythons: string[];
}

/** How many sessions started when and ran how long; open and lost ones are left out. */
export interface HeatMap {
  start_edges_ns: number[];
  length_edges_ns: number[];
  /** A list for each bin of lengths, the shortest first, of counts by start. */
  counts: number[][];
  /** How many of them went wrong. */
  flagged: number[][];
}

/** One host, or one replica. */
export interface HostLine {
  name: string;
  /** Where the replica is; the same as the name for a host. */
  host: string;
  processes: number;
  alive: number;
  in_flight: number;
  /** Sessions in flight by the phase they are in; `other` between phases. */
  phases: Record<string, number>;
  /** Declared slots, where there are any. */
  capacity: number | null;
  /** How late event loops ran what was due, over the last minute; within 5 %. */
  loop_lag_p99_ns: number | null;
  /** How long ago the latest of its processes was heard of. */
  heartbeat_age_ns: number | null;
  /** Share of the key-value cache in use, where the engine's metrics are recorded. */
  kv_use: number | null;
  /** Requests that the engine works on. */
  engine_running: number | null;
  /** Requests that wait in the engine. */
  engine_waiting: number | null;
  /** Requests that the engine put off, in the last half minute. */
  preempted: number | null;
  /** Share of prompt tokens that the engine had cached, of those it looked up in that time. */
  prefix_hits: number | null;
  /** Tokens that it generated, over that time. */
  tokens_per_s: number | null;
  /** Engines that are asked for their metrics, and do not answer. */
  engines_down: number;
}

/** All of them, by name. */
export interface Hosts {
  now_ns: number;
  grouped_by: string;
  lines: HostLine[];
}

/** One row. */
export interface Hotspot {
  path: string;
  group: string | null;
  count: number;
  /** Those that ended and were not cut off by a death; percentiles are of these. */
  measured: number;
  total_ns: number;
  /** Their time less what their direct children cover. */
  self_ns: number;
  /** Of all session time, by self time. */
  share: number;
  p50_ns: number | null;
  p95_ns: number | null;
  p99_ns: number | null;
  max_ns: number | null;
  errors: number;
  error_share: number;
  open_now: number;
}

/** Paths by self time, and what closes the sum. */
export interface HotspotAnswer {
  scope: string;
  grouped_by: string;
  outside: boolean;
  hotspots: Hotspots;
}

/** Rows by self time, the most first, and what closes the sum. */
export interface Hotspots {
  rows: Hotspot[];
  footer: Footer;
}

/** The slot time of a step, over all pools and of each. */
export interface IdleSplit {
  wall_ns: number;
  total_ns: number;
  over_ns: number;
  /** Whether the capacity of any pool is assumed. */
  assumed: boolean;
  busy_ns: number;
  idle_ns: Record<string, number>;
  pools: PoolIdle[];
}

/** Sessions in flight by the phase they were in, moment by moment. */
export interface InFlightSeries {
  /** The first moment; each further one is `bin_ns` later, and the last one is now. */
  start_ns: number;
  bin_ns: number;
  /** Phases, the one with most sessions first; `other`, between phases, is the last. */
  names: string[];
  /** The role of each. */
  roles: (string | null)[];
  /** For each name, a number for each moment; together they are what is in flight. */
  counts: number[][];
  capacity: number | null;
  bands: ShadedBand[];
}

/** How many sessions run. */
export interface InFlightTile {
  count: number;
  /** How many fit; None if no session ever ran. */
  capacity: number | null;
  /** Whether some of the capacity is not declared but the most that was ever seen. */
  is_assumed: boolean;
  spark: number[];
}

/** What one process recorded, and whether all of it arrived. */
export interface IngestLine {
  process: string;
  title: string;
  host: string;
  status: string;
  spans: number;
  open_spans: number;
  /** Spans that began and never ended, though the process went on. */
  unmatched_starts: number;
  dropped: number;
  missing_frames: number;
  heartbeat_age_ns: number;
  /** How often it beats. */
  heartbeat_ns: number;
  /** How long it was silent in all, though it lived. */
  silent_ns: number;
}

/** How fast records come in, and how late. */
export interface IngestTotal {
  /** Spans that ended in the last minute, by second. */
  spans_per_s: number;
  /** How long ago the latest record that was read was written; None if nobody writes. */
  lag_ns: number | null;
  /** What has been written to the logs and not been taken in. */
  unread_bytes: number;
  /** Spans that are not sealed yet. */
  unsealed_spans: number;
}

/** How many sessions had which lag, in versions. */
export interface LagHistogram {
  count: number;
  /** Lag and sessions, by lag; lags that no session had are left out. */
  bins: [number, number][];
  /** All lags added up. */
  total: number;
  p50: number | null;
  /** None below 20 sessions. */
  p95: number | null;
  max: number | null;
}

/** Lengths of one phase, or of whole sessions, in the bins that all share. */
export interface LengthHistogram {
  /** A phase, or `session`. */
  name: string;
  count: number;
  total_ns: number;
  counts: number[];
}

/** A percentile of how long sessions ran, and the session that it is. */
export interface LengthLine {
  percent: number;
  ran_ns: number;
  session_id: string;
  /** Of how many sessions; open and lost ones are not among them. */
  count: number;
}

/** The event loop of one process. */
export interface LoopLine {
  process: string;
  title: string;
  pid: number;
  /** Over the last minute; within 5 %. */
  lag_p99_ns: number | null;
  /** In all. */
  blocked_ns: number;
  longest_ns: number;
  /** The innermost line of the latest stack that was taken in it. */
  line: string | null;
}

/** One metric. */
export interface MetricLine {
  name: string;
  /** `counter`, `gauge` or `histogram`. */
  type: string;
  /** How many different labels it has. */
  label_sets: number;
  points: number;
  first_ns: number;
  last_ns: number;
  /** What it was told last, of a gauge. */
  last: number | null;
}

/** The metrics of a run, by name. */
export interface Metrics {
  metrics: MetricLine[];
}

/** The run as of this moment. */
export interface Now {
  /** Now; the end of a run that is over. */
  now_ns: number;
  is_alive: boolean;
  in_flight: InFlightTile;
  progress: ProgressTile;
  /** Sessions that ended per minute, over the last five. */
  ended: RateTile;
  /** Output tokens per second, over the last minute. */
  tokens: RateTile;
  oldest: OldestTile;
  failures: ErrorTile;
  /** The running step first, then the last one that is over. */
  waits: StepWaits[];
  by_phase: InFlightSeries;
  open_sessions: number;
  /** How many of the open sessions and spans need a look. */
  alarms: number;
  /** The most suspicious 20 of the open sessions. */
  stuck: StuckRow[];
  hosts: Hosts;
  /** Of the last fifteen minutes. */
  errors: Errors;
}

/** The session that has been open longest. */
export interface OldestTile {
  session_id: string | null;
  age_ns: number;
  task_key: string | null;
  sample: number | null;
  /** The phase it is in. */
  name: string | null;
  detail: string | null;
  /** How old the oldest was, in nanoseconds. */
  spark: number[];
}

/** A run at one glance. */
export interface Overview {
  name: string;
  created_ns: number;
  now_ns: number;
  first_ns: number;
  /** When anything was last heard of it. */
  last_ns: number;
  is_alive: boolean;
  /** Whether a process died and none is left. */
  is_crashed: boolean;
  /** Sessions that were lost with their processes. */
  unfinished: number;
  /** Where to land: `now` while it lives, else `steps`; `sessions` if it has no steps. */
  home: string;
  steps: StepsKnown;
  spans: number;
  sessions_count: number;
  open_sessions: number;
  processes: ProcessLine[];
  hosts: string[];
  /** The role of each phase or span name that has one. */
  roles: Record<string, string>;
  families: string[];
  completeness: Completeness;
  tags: Record<string, string>;
  /** Of the Rollscopes that recorded it. */
  versions: string[];
  pythons: string[];
}

/** One message, or any other text that was kept. */
export interface PayloadMessage {
  span_id: string;
  /** Its place among all messages of its span; with `span_id` it names the message. */
  index: number;
  time_ns: number;
  /** What it was kept as. */
  name: string;
  /** Who said it, where it is part of a conversation. */
  role: string | null;
  text: string;
  /** Of the whole text. */
  bytes: number;
  /** Whether all that was kept is shown; if not, it can be opened. */
  is_whole: boolean;
  /** Whether its end was not kept. */
  cut: boolean;
  is_json: boolean;
  /** How many messages before it are left out, since the same stand above. */
  repeated: number;
}

/** What was kept of a session. */
export interface Payloads {
  session_id: string;
  captured: boolean;
  /** Why there is nothing, and what to do about it. */
  why: string | null;
  messages: PayloadMessage[];
  /** How many there are; fewer are given where they are too many or too long. */
  of: number;
  /** What is not shown, and how to get it. */
  note: string | null;
}

/** One phase on both sides; differences are second less first. */
export interface PhaseComparison {
  name: string;
  first: Ranks;
  second: Ranks;
  /** Of the medians; None if a side has none. */
  difference_ns: number | null;
  /** The second median as a multiple of the first. */
  ratio: number | null;
  /** Cliff's delta, from -1 (all shorter than before) to 1 (all longer). */
  effect: number;
  /** Of the 95 % interval of the difference; None with too few tasks to tell. */
  low_ns: number | null;
  high_ns: number | null;
  /** The interval does not reach across zero. */
  is_clear: boolean;
  first_deciles_ns: number[];
  second_deciles_ns: number[];
  /** Where a robust line through the deciles passes at each of the first; none without them. */
  line_ns: number[];
  text: string;
}

/** How long the chosen sessions and the rest spent in one phase. */
export interface PhaseDifference {
  name: string;
  chosen_p50_ns: number;
  rest_p50_ns: number;
  /** Cliff's delta. */
  effect: number;
}

/** All phases of one name and group. */
export interface PhaseLine {
  name: string;
  group: string | null;
  count: number;
  /** Those that ended and were not cut off by a death; percentiles are of these. */
  measured: number;
  /** Of all of them: up to now where they are open, until last heard of where they are lost. */
  total_ns: number;
  p50_ns: number;
  /** None with fewer than 20. */
  p95_ns: number | null;
  /** None with fewer than 100. */
  p99_ns: number | null;
  max_ns: number;
  /** Of those that say how long they waited for their service. */
  queue_p50_ns: number | null;
  /** None with fewer than 20. */
  queue_p95_ns: number | null;
  /** How much of their time was waiting, of those that say so. */
  queue_share: number | null;
  errors: number;
  open_now: number;
}

/** The time of one phase in the sessions that lag, and in the others. */
export interface PhaseSplit {
  name: string;
  stale_p50_ns: number | null;
  rest_p50_ns: number | null;
  stale_total_ns: number;
  rest_total_ns: number;
}

/** What all phases of one name took within a session. */
export interface PhaseTimes {
  count: number;
  /** Time during which at least one of them was open. */
  union_ns: number;
  /** Their lengths added up; more than the union if they overlap. */
  sum_ns: number;
  /** Their part of the session, such that the parts and the rest make the whole. */
  share_ns: number;
}

/** Phases by total time, the most first, and the errors that ended spans. */
export interface Phases {
  scope: string;
  grouped_by: string;
  lines: PhaseLine[];
  errors: ErrorKind[];
}

/** Sessions in columns: the first of each list belong together, in order of their end. */
export interface Points {
  sessions: string[];
  start_ns: number[];
  /** Now, for those that are open. */
  end_ns: number[];
  ran_ns: number[];
  /** The outcome; `open`, `lost` or `none` where there is none. */
  outcome: string[];
  /** Whether it went wrong or hangs. */
  is_flagged: boolean[];
  /** How many there are; of more than 5,000 only some are given, flagged ones first of all. */
  of: number;
}

/** One pool over the step, in bins of the same width; each number is a mean over its bin. */
export interface PoolArea {
  pool: string;
  capacity: number;
  is_assumed: boolean;
  /** Sessions in flight, of whichever step. */
  running: number[];
  /** Slots without a session. */
  idle: number[];
  /** Those of them that were idle because of the tail. */
  tail: number[];
}

/** The slot time of one pool; `busy_ns` and all of `idle_ns` add up to `total_ns` exactly. */
export interface PoolIdle {
  pool: string;
  capacity: number;
  /** Whether the capacity is not declared but the most that was ever seen. */
  assumed: boolean;
  /** Capacity times wall, and `over_ns`. */
  total_ns: number;
  /** Slot time of sessions beyond the capacity; more than 0 says that the capacity is too low. */
  over_ns: number;
  busy_ns: number;
  /** By cause, in order of precedence. */
  idle_ns: Record<string, number>;
}

/** What the tail cost in one pool. */
export interface PoolTail {
  pool: string;
  /** Slot time without a session, for want of any session of the step to start. */
  bubble_ns: number;
  /** Of the pool's slot time. */
  share: number;
}

/** One process of the run. */
export interface ProcessLine {
  process: string;
  title: string;
  host: string;
  pid: number;
  role: string;
  rank: number | null;
  /** `alive`, `ended` (closed its log), `dead` (vanished) or `imported` (a file tells of it). */
  status: string;
  started_ns: number;
  last_seen_ns: number;
  /** Of the Rollscope that recorded it. */
  version: string;
  python: string;
}

/** How far the running step is, or the last one. */
export interface ProgressTile {
  step: number | null;
  is_running: boolean;
  /** Sessions of the step that are over. */
  done: number;
  /** How many it has; while it runs, at least as many as steps usually have. */
  of: number | null;
  /** Of a step that is running. */
  eta: Eta | null;
  /** How many of its sessions were over. */
  spark: number[];
}

/** When something will be, on the clock of the facts. */
export interface Range {
  p10_ns: number;
  p50_ns: number;
  p90_ns: number;
}

/** Percentiles of some lengths; one that too few values carry is None, the maximum is not. */
export interface Ranks {
  count: number;
  p50_ns: number | null;
  p95_ns: number | null;
  p99_ns: number | null;
  max_ns: number | null;
}

/** How much came in a while. */
export interface RateTile {
  rate: number;
  /** Over how long the rate is taken. */
  window_ns: number;
  spark: number[];
}

/** The step's sessions on some number of slots. */
export interface Replay {
  factor: number;
  slots: number;
  /** From the first start to the last end. */
  rollout_ns: number;
  /** The step's wall, if everything but the rollout stays as it was. */
  wall_ns: number;
  /** How much of the slots' time was used, from 0 to 1. */
  use: number;
}

/** What one pool did during a step. */
export interface Replica {
  pool: string;
  /** Sessions of this step. */
  sessions: number;
  /** Of its slot time, whichever step the sessions were for. */
  busy_share: number;
  /** Output tokens of the sessions that ended during the step, over its wall time. */
  tokens_per_s: number;
  /** When its last session of this step ended. */
  last_end_ns: number | null;
}

/** All pools of a step. */
export interface ReplicaSplit {
  /** By name. */
  replicas: Replica[];
  /** The largest busy share over the mean of all; 1 if all were equally busy. */
  imbalance: number;
}

/** Points, and lines at p50 and p95 of how long they ran. */
export interface Scatter {
  scope: string;
  points: Points;
  /** p50 and, with 20 sessions or more, p95; each names the session that it is. */
  lines: LengthLine[];
}

/** A stretch of the path that one span, session or the step itself stands for. */
export interface Segment {
  start_ns: number;
  end_ns: number;
  /** The span's; `other` for a step's or session's own time, `queue` before a session. */
  name: string;
  /** Of which tool, environment, reward function or model: that of `within`, else its own. */
  detail: string | null;
  /** The nearest phase, or span with a known role, that it is or lies in. */
  within: string | null;
  session_id: string | null;
  span_id: string | null;
  /** Whether it is on the path by order of time only, not by a recorded link. */
  inferred: boolean;
}

/** One metric along an axis. */
export interface Series {
  name: string;
  /** Of the first line, if it is recorded as several. */
  type: string;
  /** `time` or `step`. */
  axis: string;
  /** Steps, or the moments that stretches of time begin at. */
  positions: number[];
  /** How long each stretch of time is. */
  width_ns: number | null;
  lines: SeriesLine[];
  /** Sets of labels beyond the first few. */
  left_out: number;
}

/** One metric with one set of labels. */
export interface SeriesLine {
  /** Where a gauge comes from several roles or ranks, these are among them. */
  labels: Record<string, string>;
  /** `counter`, `gauge` or `histogram`. */
  type: string;
  /** One for each position: a gauge's mean, a counter's sum, a histogram's mean; None where nothing was recorded. */
  values: (number | null)[];
  /** The least within each position; of a counter, nothing. */
  lows: (number | null)[];
  highs: (number | null)[];
  /** Of a histogram, the value that half of those in each position do not exceed, within 5 %; empty for others, and where there are too many records to read. */
  p50: (number | null)[];
  p95: (number | null)[];
}

/** All calls of one service. */
export interface ServiceLine {
  /** The phase. */
  name: string;
  /** Which tool, environment, reward function or model. */
  detail: string | null;
  role: string | null;
  calls: number;
  /** Calls that ended and were not cut off by a death; percentiles are of these. */
  measured: number;
  open_now: number;
  total_ns: number;
  /** Measured calls that say how long they waited for the service. */
  queued: number;
  queue_p50_ns: number | null;
  /** None with fewer than 20. */
  queue_p95_ns: number | null;
  /** Of the time without queueing, where that is recorded; else of all of it. */
  service_p50_ns: number | null;
  /** None with fewer than 20. */
  service_p95_ns: number | null;
  /** None with fewer than 100. */
  service_p99_ns: number | null;
  service_max_ns: number | null;
  /** Time during which at least one call was open. */
  busy_ns: number;
  /** Of the time from the first start to the last end of the scope's sessions. */
  busy_share: number;
  /** Calls open at once, on average over that time. */
  mean_open: number;
  /** Calls made again, as far as recorded. */
  retries: number;
  /** Calls whose error is a time limit. */
  timeouts: number;
  errors: number;
  /** By what precedes the colon of the reason, the most frequent first; at most eight. */
  error_kinds: Record<string, number>;
}

/** Services by total time, the most first. */
export interface Services {
  scope: string;
  start_ns: number;
  end_ns: number;
  lines: ServiceLine[];
}

/** Everything about one session. */
export interface SessionAnswer {
  session: SessionRow;
  now_ns: number;
  /** So far, if it is open. */
  total_ns: number;
  phases: Record<string, PhaseTimes>;
  /** Time in which no phase was open; with the shares of the phases it makes the whole. */
  other_ns: number;
  lag_start: number | null;
  lag_end: number | null;
  lag_consume: number | null;
  /** In order of their start, each below its parent. */
  spans: SpanDetail[];
  events: EventDetail[];
  stacks: StackDetail[];
  /** The other sessions of its task and step, and other attempts at it. */
  siblings: SessionRow[];
}

/** One session of the list. */
export interface SessionLine {
  row: SessionRow;
  /** So far, if it is open. */
  ran_ns: number;
  /** Time by phase, overlaps counted once within a name. */
  phases: Record<string, number>;
  /** Time in which no phase was open. */
  other_ns: number;
  /** Versions behind the newest one when consumed, else at its end, else at its start. */
  lag: number | null;
}

/** Some sessions, and how many there are. */
export interface SessionList {
  sessions: SessionLine[];
  /** How many the filter lets through. */
  matched: number;
  /** How many there are in the scope. */
  of: number;
}

/** One session with everything known of it, late facts included. */
export interface SessionRow {
  span_id: string;
  process: string;
  host: string;
  /** What its slot belongs to: the replica it is pinned to, else its process. */
  pool: string;
  task_key: string | null;
  /** What the task is one of: its `family` attribute, else what precedes the first `/`. */
  family: string | null;
  group: string | null;
  sample: number | null;
  /** 0 for the first. */
  attempt: number;
  /** The step that dispatched it. */
  step: number | null;
  consumed_step: number | null;
  consumed_ns: number | null;
  start_ns: number;
  end_ns: number | null;
  status: "open" | "ok" | "error" | "cancelled" | "lost";
  outcome: "accepted" | "rejected" | "failed" | "timeout" | "dropped" | "cancelled" | null;
  reason: string | null;
  version_start: number | null;
  version_end: number | null;
  /** From its submission to its start, where recorded. */
  waited_ns: number | null;
  deadline_ns: number | null;
  reward: number | null;
  tokens_in: number | null;
  tokens_out: number | null;
  turns: number | null;
  attrs: Record<string, unknown>;
}

/** The turns of a session, and what belongs to its page. */
export interface SessionTurns {
  session_id: string;
  turns: Turn[];
  /** All tries at this sample, this one among them, in their order. */
  attempts: Attempt[];
  versions: VersionSegment[];
  engine: EngineTime[];
  /** Of a session that is open and of which a picture was taken. */
  awaits: AwaitLine | null;
}

/** A time in which pools stood still. */
export interface ShadedBand {
  /** `pause` or `sync`. */
  kind: string;
  start_ns: number;
  end_ns: number;
}

/** What would be gained without the sessions that held the tail. */
export interface Slack {
  sessions: string[];
  /** How much earlier the step would end, if the work after them took as long. */
  earlier_ns: number;
  /** Whom the step would then wait for. */
  next_session: string;
  /** What took most of that session. */
  next_name: string;
  next_detail: string | null;
}

/** A span of the session, with its attributes. */
export interface SpanDetail {
  span: SpanRow;
  depth: number;
  attrs: Record<string, unknown>;
}

/** Any span. */
export interface SpanRow {
  span_id: string;
  parent_id: string | null;
  session_id: string | null;
  process: string;
  kind: "step" | "task" | "session" | "phase" | "span" | "state";
  name: string;
  /** Which tool, environment, reward function or model. */
  detail: string | null;
  start_ns: number;
  /** None while open; a lost span ends when its process was last heard of. */
  end_ns: number | null;
  status: "open" | "ok" | "error" | "cancelled" | "lost";
  reason: string | null;
  step: number | null;
  lane: string | null;
  tokens: number | null;
  /** How much of it was waiting for the service, where recorded. */
  queue_ns: number | null;
  /** The session or span whose end it waited for, where recorded. */
  link: string | null;
  version: number | null;
}

/** Where a span hung. */
export interface StackDetail {
  span_id: string;
  time_ns: number;
  task: string;
  frames: string[];
}

/** A moment worth a line, and the session that makes it. */
export interface StairLine {
  /** `last start`, `p50`, `p95` or `last`. */
  name: string;
  time_ns: number;
  session_id: string;
}

/** One session of the step. */
export interface StairRow {
  session_id: string;
  start_ns: number;
  /** Now, if it is open. */
  end_ns: number;
  is_open: boolean;
  is_holder: boolean;
  /** Its part of the slot time that the tail cost. */
  charge_ns: number;
  task_key: string | null;
  sample: number | null;
  outcome: string | null;
  pool: string;
}

/** The tail of a step as a picture. */
export interface Staircase {
  step: number | null;
  start_ns: number;
  end_ns: number;
  is_open: boolean;
  /** The width of a bin of the areas, which begin at `start_ns`. */
  bin_ns: number;
  pools: PoolArea[];
  /** By end, the first to end first; of more than 2,000 the last to end. */
  rows: StairRow[];
  /** How many sessions the step has. */
  of: number;
  lines: StairLine[];
  bubble_ns: number;
  tail_wall_ns: number;
  is_broad: boolean;
}

/** How stale some sessions were. */
export interface Staleness {
  at_start: LagHistogram;
  at_end: LagHistogram;
  at_consume: LagHistogram;
  /** What was added between start and end. */
  in_flight: LagHistogram;
  /** What was added between end and consumption. */
  in_queue: LagHistogram;
  /** Sessions that do not say which version made them. */
  without_version: number;
  /** Whether any version was ever published; without that no lag can be told. */
  is_published: boolean;
  /** The lag that the run allows, where it says so. */
  bound: number | null;
  /** Sessions consumed with more than that. */
  beyond_bound: number;
  /** The lag of the average consumed token; None unless versions are recorded by segment. */
  token_mean: number | null;
  stale_count: number;
  rest_count: number;
  /** Sessions at a lag of two or more against the rest, the phase that differs most first. */
  phases: PhaseSplit[];
}

/** Everything about one step. */
export interface StepAnswer {
  /** The recorded step before it. */
  previous: number | null;
  following: number | null;
  summary: StepSummary;
  verdict: Verdict;
  parts: StepParts;
  staleness: Staleness;
  what_if: WhatIf;
  /** Of a step that is still running. */
  eta: Eta | null;
  /** The sessions that held the tail, the last one first. */
  holders: SessionRow[];
  slowest: SessionRow[];
}

/** One step of the list. */
export interface StepLine {
  summary: StepSummary;
  /** How much longer than the median of the previous ten it took, as a share. */
  change: number | null;
  verdict: Verdict;
}

/** Everything computed about one step, from one sweep. */
export interface StepParts {
  idle: IdleSplit;
  trainer: TrainerSplit;
  tail: TailSplit;
  path: CriticalPath;
  sync: SyncSplit;
  replicas: ReplicaSplit;
  waste: Waste;
}

/** Steps, and a value for each of them everywhere below. */
export interface StepSeries {
  steps: number[];
  wall_ns: number[];
  is_open: boolean[];
  sync: SyncStep[];
  /** Slot time by the phase that sessions were in, whichever step they were for, `other` between phases; with the idle time of the list of steps it makes the slot time. */
  busy_ns: Record<string, number[]>;
  /** The most frequent first. */
  errors: ErrorStrip[];
}

/** One row of the list of steps, and what later steps are compared with. */
export interface StepSummary {
  step: number | null;
  wall_ns: number;
  is_open: boolean;
  sessions: number;
  /** How many sessions by outcome. */
  outcomes: Record<string, number>;
  /** Sessions that no step has consumed yet, where that is recorded; a later one may. */
  unconsumed: number;
  tail_wall_ns: number;
  bubble_ns: number;
  trainer_wait_ns: number;
  sync_ns: number;
  slot_ns: number;
  busy_ns: number;
  /** By cause. */
  idle_ns: Record<string, number>;
  waste_ns: number;
  /** Of the slot time of the step's sessions that are over. */
  waste_share: number;
  /** Versions between the start of a session and its consumption, where both are known. */
  lag_p50: number | null;
  lag_max: number | null;
  tokens_per_s: number;
  mean_reward: number | null;
  /** The critical path by name; adds up to the wall. */
  path_ns: Record<string, number>;
  /** Of all phase time, by name. */
  phase_shares: Record<string, number>;
  /** By name and detail, as `service_key` writes them. */
  p95_ns: Record<string, number>;
  train_ns: number;
}

/** Who waited in one step: the trainer for its batch, or slots for work. */
export interface StepWaits {
  step: number;
  is_running: boolean;
  wall_ns: number;
  trainer: TrainerSplit;
  /** How much of the wall the trainer waited. */
  trainer_wait_share: number;
  /** Capacity times wall. */
  slot_ns: number;
  busy_ns: number;
  /** By cause; with `busy_ns` it makes `slot_ns`. */
  idle_ns: Record<string, number>;
  /** How much of the slot time was idle. */
  idle_share: number;
  /** Whether the capacity of any pool is assumed. */
  is_assumed: boolean;
  /** Sessions of the step that ended well and that nobody has consumed yet; None if consumption is not recorded. */
  buffered: number | null;
  /** Versions behind the newest: of a running step's sessions in flight, else when consumed. */
  lag_p50: number | null;
  lag_max: number | null;
}

/** The steps of a run, the latest last. */
export interface Steps {
  steps: StepLine[];
  /** How many steps the run has. */
  of: number;
  /** Sessions that neither a dispatching nor a consuming step is known of; all of a run that records no steps. */
  unassigned: number;
  changes: Changes;
}

/** Which steps the trainer recorded. */
export interface StepsKnown {
  count: number;
  first: number | null;
  last: number | null;
  /** The step that is open now. */
  running: number | null;
}

/** Open sessions, the most suspicious first, and open spans outside of sessions. */
export interface Stuck {
  now_ns: number;
  open_sessions: number;
  /** How many of both need a look. */
  alarms: number;
  rows: StuckRow[];
  outside: StuckRow[];
}

/** One open session, or an open span that belongs to none, and how it is judged. */
export interface StuckRow {
  session_id: string | null;
  task_key: string | null;
  sample: number | null;
  attempt: number;
  /** The leaf: the deepest open span. */
  span_id: string;
  name: string;
  detail: string | null;
  start_ns: number;
  /** How long the leaf has been open. */
  age_ns: number;
  /** How long ago anything was last heard of the session. */
  quiet_ns: number;
  /** Age over the p99 of finished spans of its kind; None if too few have finished. */
  score: number | null;
  /** The longest one stands for p99, since few have finished. */
  is_approximate: boolean;
  band: "fine" | "overdue" | "silent" | "slow" | "stuck" | "unknown";
  host: string;
  pool: string;
  process: string;
  /** The moment by which the session should have ended. */
  deadline_ns: number | null;
  /** The latest error inside the session; before the first, what ended its previous attempt. */
  last_error: string | null;
  /** The chain of awaits, the innermost last. */
  stack: string[];
  stack_age_ns: number | null;
  /** The innermost line of it that is not the standard library's. */
  line: string | null;
  /** How many other open sessions sit on the same line. */
  same_line: number;
}

/** Weight sync on one lane; the four parts add up to `total_ns` exactly. */
export interface SyncLane {
  lane: string;
  /** Time in which any part of it was open. */
  total_ns: number;
  pause_ns: number;
  transfer_ns: number;
  resume_ns: number;
  /** What is recorded as sync, but as none of its parts. */
  rest_ns: number;
}

/** Weight sync of a step; the four parts add up to `total_ns` exactly. */
export interface SyncSplit {
  total_ns: number;
  pause_ns: number;
  transfer_ns: number;
  resume_ns: number;
  rest_ns: number;
  /** By name. */
  lanes: SyncLane[];
  /** The lane that synced longest, if there is more than one. */
  slowest: string | null;
  /** Slot time that stood idle for it. */
  blocked_ns: number;
  /** Slot time of sessions that were in flight meanwhile. */
  in_flight_ns: number;
}

/** The weight sync of one step; the four parts add up to the total. */
export interface SyncStep {
  total_ns: number;
  pause_ns: number;
  transfer_ns: number;
  resume_ns: number;
  rest_ns: number;
}

/** The tail of a step; the charges add up to `bubble_ns` exactly, and so do the pools. */
export interface TailSplit {
  last_start_ns: number | null;
  /** When 95 % of the step's sessions had ended. */
  p95_end_ns: number | null;
  last_end_ns: number | null;
  /** From there to the last end, as far as it lies within the step. */
  tail_wall_ns: number;
  bubble_ns: number;
  /** Of all slot time. */
  share: number;
  pools: PoolTail[];
  /** The largest first; each idle instant is shared by the sessions that were still open. */
  charges: Charge[];
  /** The sessions but for which the bubble would be smaller by 80 %, the last to end first. */
  holders: string[];
  /** Whether these are too many to be culprits. */
  is_broad: boolean;
}

/** All tries at one task. */
export interface TaskLine {
  /** None for sessions that name none. */
  task_key: string | null;
  family: string | null;
  /** Its sessions: samples, steps and attempts alike. */
  tries: number;
  /** In how many steps it was tried. */
  steps: number;
  open_now: number;
  /** Session time, up to now for open ones. */
  total_ns: number;
  /** Of the sessions that were measured. */
  p50_ns: number | null;
  max_ns: number | null;
  /** Sessions that failed, hit a time limit or were lost. */
  failures: number;
  /** Of the sessions that are over. */
  failure_share: number;
  timeouts: number;
  /** Sessions that are not a first attempt. */
  retries: number;
  rewarded: number;
  mean_reward: number | null;
  /** The standard deviation of the rewards. */
  spread: number | null;
  /** When it was last seen: the end of its last session, or now. */
  last_ns: number;
  /** Its slowest session. */
  session_id: string;
}

/** Some tasks, and how many there are. */
export interface Tasks {
  tasks: TaskLine[];
  /** How many tasks have a session that the filter lets through. */
  matched: number;
}

/** What one condition of the filter does. */
export interface TermEffect {
  term: string;
  /** How many sessions it lets through by itself. */
  alone: number;
  /** How many there would be without it; this many less those shown are what it removed. */
  without: number;
}

/** Where the trainer's time went; the parts add up to `wall_ns` exactly. */
export interface TrainerSplit {
  wall_ns: number;
  train_ns: number;
  sync_ns: number;
  /** Waiting until 95 % of the needed sessions had come. */
  filling_ns: number;
  /** Waiting for the rest of them. */
  stragglers_ns: number;
  other_ns: number;
}

/** One turn, and the spans right below the session that it is made of. */
export interface Turn {
  /** As recorded, else counted from 0; None for what comes before the first. */
  number: number | null;
  start_ns: number;
  /** None while one of its spans is open. */
  end_ns: number | null;
  /** Whether the number was counted because none is recorded. */
  is_counted: boolean;
  /** Time by name, lengths added up. */
  phases: Record<string, number>;
  tokens_in: number | null;
  tokens_out: number | null;
  /** Spans of it that failed, those inside of others included. */
  errors: number;
  /** Their ids, in order of their start. */
  span_ids: string[];
}

/** What there is to say about a step. */
export interface Verdict {
  step: number | null;
  /** The first sentence: how long it took, and how long steps take. */
  opening: string;
  /** First what limits trust, then at most three causes, the most at stake first. */
  findings: CaseFinding[];
  /** Said if no single cause was found. */
  closing: string | null;
}

/** Tokens of one generation that came from one version of the policy. */
export interface VersionSegment {
  span_id: string;
  version: number;
  tokens: number | null;
  start_ns: number;
  end_ns: number | null;
  /** Whether the generation has other segments too; the times are those of all of it. */
  is_part: boolean;
}

/** What was thrown away of some sessions. */
export interface Waste {
  /** By slot time, the most first. */
  rows: WasteRow[];
  count: number;
  tokens: number;
  slot_ns: number;
  share: number;
  /** Sessions that are over. */
  all_count: number;
  all_slot_ns: number;
  /** Over and not consumed, but they still may be. */
  pending: number;
  /** Whether any was consumed; otherwise accepted ones are pending, never waste. */
  is_consumption_recorded: boolean;
  /** By duration, then by length in tokens. */
  selection: WasteSelection[];
}

/** Sessions never consumed, of one outcome and reason. */
export interface WasteRow {
  /** The outcome; `lost` for those whose process died, `none` where none was ever told. */
  outcome: string;
  reason: string | null;
  /** They were tried again. */
  is_earlier_attempt: boolean;
  count: number;
  /** Generated by them, as far as recorded. */
  tokens: number;
  /** How long they held their slots. */
  slot_ns: number;
  /** Of the slot time of all sessions that are over. */
  share: number;
}

/** Whether the sessions that were consumed differ in one measure from those discarded. */
export interface WasteSelection {
  measure: string;
  consumed: number;
  discarded: number;
  deciles: Decile[];
  /** Of Kolmogorov, from 0 for alike to 1 for apart; None if there is nothing to compare. */
  distance: number | null;
  /** What chance alone stays below, nineteen times of twenty. */
  limit: number | null;
  is_flagged: boolean;
}

/** Replays on fewer and more slots; they assume that sessions take as long as they did. */
export interface WhatIf {
  capacity: number;
  /** Whether the capacity is the most that was ever seen. */
  assumed: boolean;
  sessions: number;
  /** The truth that the replay on the step's own slots is held to. */
  rollout_ns: number;
  replays: Replay[];
  /** Whether that replay, or the wall it gives, is off by more than 10 %; then all are void. */
  cannot_tell: boolean;
}

/** The answer to each question. */
export interface Answers {
  /** what changed between two runs, or two stretches of steps */
  compare: Comparison;
  /** what is wrong with the run, and what to do about it */
  doctor: Checkup;
  /** how long sessions and phases took: heat map, histograms and points */
  durations: Durations;
  /** how inference engines did over time, where they are asked for their metrics */
  engines: EngineHistory;
  /** which errors end spans, where, since when */
  errors: Errors;
  /** sessions under a filter by outcome, step, host, family, phase, reason and attempt */
  facets: Facets;
  /** groups with equal rewards, incomplete ones, and their slowest members */
  groups: Groups;
  /** whether the run can be trusted: drops, clocks, silence, disk */
  health: Health;
  /** how each host or replica is doing now */
  hosts: Hosts;
  /** where session time goes, by span path */
  hotspots: HotspotAnswer;
  /** which metrics are recorded */
  metrics: Metrics;
  /** how the run is doing: what is in flight, what is stuck, who waits */
  now: Now;
  /** the run at one glance: how far it is, and whether it is complete */
  overview: Overview;
  /** what was said in a session, as far as it was kept */
  payloads: Payloads;
  /** how long phases take, and which errors end spans */
  phases: Phases;
  /** sessions by when they ended and how long they ran */
  scatter: Scatter;
  /** what is different about the sessions that a filter lets through */
  select: CompareSelection;
  /** one metric over time, or from step to step */
  series: Series;
  /** each tool, environment and reward function: queueing, service, errors */
  services: Services;
  /** what one rollout did, and what became of it */
  session: SessionAnswer;
  /** sessions by steps, time and a filter, in any order */
  sessions: SessionList;
  /** the tail of a step: slots in flight, and its sessions by their ends */
  staircase: Staircase;
  /** why a step took as long as it did */
  step: StepAnswer;
  /** errors, weight sync and busy slots from step to step */
  step_series: StepSeries;
  /** the steps with their verdicts, and what changed */
  steps: Steps;
  /** which rollouts are stuck right now, in which phase, at which line */
  stuck: Stuck;
  /** which tasks are slow or fail again and again */
  tasks: Tasks;
  /** the turns of a session, its attempts, versions and engine times */
  turns: SessionTurns;
}

/** What each question takes. */
export interface Parameters {
  compare: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** the other run; none: this */
    other?: string;
    /** which steps: latest, all, 37 or 30-40 */
    other_scope?: string;
    /** how to call this side */
    name?: string;
    /** how to call that */
    other_name?: string;
  };
  doctor: {
    /** read every segment whole */
    deep?: "1" | "0";
  };
  durations: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** which sessions, in the filter language */
    filter?: string;
  };
  engines: {
    /** only this one, if it is known */
    replica?: string;
    /** how many stretches of time */
    points?: number;
    /** from when; a quarter of an hour before the end if not given */
    since_ns?: number | string;
    /** until when; now if not given */
    until_ns?: number | string;
  };
  errors: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** only what had not ended by then */
    since_ns?: number | string;
  };
  facets: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** which sessions, in the filter language */
    filter?: string;
    /** only what ended then or later; open ones end now */
    ended_from_ns?: number | string;
    /** only what ended before */
    ended_to_ns?: number | string;
  };
  groups: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** ratio, slowest, reward, spread, equal, incomplete; - turns it */
    sort?: string;
    /** how many */
    limit?: number;
    /** how many to leave out before them */
    offset?: number;
  };
  health: Record<string, never>;
  hosts: {
    /** what a line is */
    by?: "host" | "replica";
  };
  hotspots: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** how rows are grouped */
    by?: "path" | "name" | "host" | "tool" | "family";
    /** what is not part of a session */
    outside?: "1" | "0";
  };
  metrics: Record<string, never>;
  now: {
    /** moments of the series over fifteen minutes */
    bins?: number;
  };
  overview: Record<string, never>;
  payloads: {
    /** its id, or task and sample as task#3 */
    session: string;
    /** one message to give whole, as span,index */
    full?: string;
  };
  phases: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** what to group phases by */
    by?: "name" | "detail" | "family" | "worker";
  };
  scatter: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** which sessions, in the filter language */
    filter?: string;
    /** only what ended then or later; open ones end now */
    ended_from_ns?: number | string;
    /** only what ended before */
    ended_to_ns?: number | string;
  };
  select: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** which sessions, in the filter language */
    filter?: string;
    /** only those that started then or later */
    from_ns?: number | string;
    /** only those that started before */
    to_ns?: number | string;
    /** what they are held against; none: all others */
    against?: string;
  };
  series: {
    /** which metric */
    name: string;
    /** along what */
    axis?: "time" | "step";
    /** how many stretches of time */
    points?: number;
    /** only what had not ended by then */
    since_ns?: number | string;
    /** only what had started by then */
    until_ns?: number | string;
  };
  services: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
  };
  session: {
    /** its id, or task and sample as task#3 */
    session: string;
  };
  sessions: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** which sessions, in the filter language */
    filter?: string;
    /** by what; - turns it */
    sort?: string;
    /** how many */
    limit?: number;
    /** only what had not ended by then */
    since_ns?: number | string;
    /** only what had started by then */
    until_ns?: number | string;
    /** how many to leave out before them */
    offset?: number;
    /** only what ended then or later; open ones end now */
    ended_from_ns?: number | string;
    /** only what ended before */
    ended_to_ns?: number | string;
  };
  staircase: {
    /** which step */
    step?: string;
  };
  step: {
    /** which step */
    step?: string;
  };
  step_series: {
    /** which steps; the last ones if none are given */
    scope?: string;
    /** how many, where no steps are given */
    last?: number;
  };
  steps: {
    /** which steps; the last ones if none are given */
    scope?: string;
    /** how many, where no steps are given */
    last?: number;
  };
  stuck: Record<string, never>;
  tasks: {
    /** which steps: latest, all, 37 or 30-40 */
    scope?: string;
    /** which sessions, in the filter language */
    filter?: string;
    /** tries, total, p50, max, failures, timeouts, retries, reward, spread, seen, task; - turns it */
    sort?: string;
    /** how many */
    limit?: number;
    /** how many to leave out before them */
    offset?: number;
  };
  turns: {
    /** its id, or task and sample as task#3 */
    session: string;
  };
}
