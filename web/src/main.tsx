/** The page of a server. */
import { ServerSource } from "./model/source";
import { start } from "./start";

start(new ServerSource());
