/** What the compiled markup calls; the build puts it into every file. Smaller than the newer way. */
export { Fragment, h } from "preact";
