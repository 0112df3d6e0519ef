export { ResumableHttpAgent, type ThreadRun } from "./agent.js";
