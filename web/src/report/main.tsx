/** The page of a report: the same, reading from the data that stand in it. */
import { formatRoute, parseRoute } from "../model/route";
import { start } from "../start";
import { navigate } from "../state/route";
import { ReportSource } from "./source";

const report = new ReportSource();
start(report);
if (parseRoute(location.hash).run === "") {
  void report.index.then(({ run }) => {
    navigate(formatRoute({ run }));
  });
}
