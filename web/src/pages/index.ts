/** Every page by its name in the address. */
import type { ComponentType } from "preact";
import type { Overview } from "../model/answers";
import type { Page } from "../model/route";
// The bundle is in the order of imports; in this one gzip finds most to repeat, 1 % less than by name.
import { TimelinePage } from "./timeline/page";
import { StepPage } from "./step/page";
import { NowPage } from "./now/page";
import { StepsPage } from "./steps/page";
import { SessionPage } from "./session/page";
import { SessionsPage } from "./sessions/page";
import { HealthPage } from "./health/page";
import { ComparePage } from "./compare/page";

export interface PageProps {
  overview: Overview;
  /** The step or session it is about. */
  arg: string;
}

export const PAGE_VIEWS: Readonly<Record<Page, ComponentType<PageProps>>> = {
  compare: ComparePage,
  health: HealthPage,
  now: NowPage,
  session: SessionPage,
  sessions: SessionsPage,
  step: StepPage,
  steps: StepsPage,
  timeline: TimelinePage,
};
