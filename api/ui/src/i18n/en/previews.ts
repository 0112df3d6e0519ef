// The words of the previews of files.
import { apart } from "../apart";

export const previews = {
  loading: "Reading",
  table: (name: string) => `Table of ${apart(name)}`,
  empty: "The file is empty.",
  cutTable: (rows: number) => `These are the first ${rows} rows.`,
  cut: (size: string) => `These are the first ${size}.`,
  download: "Download the file to see all of it.",
  inText: "The text has all of it.",
  asTable: "As a table",
  asText: "As text",
};
