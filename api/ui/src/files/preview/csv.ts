// Reads the beginning of a CSV file into a table of bounded size.

export interface Table {
  rows: string[][];
  /** Whether the file has more than the table. */
  hasMoreRows: boolean;
  hasMoreColumns: boolean;
}

export interface Limits {
  rows: number;
  columns: number;
  /** Characters of a field. */
  field: number;
}

const LIMITS: Limits = { rows: 200, columns: 30, field: 500 };

/** Excel separates by semicolons where a comma is the decimal sign. */
const SEPARATORS = [",", ";", "\t", "|"];

/** `isCut` says that the text ends before the file does, so its last line may be incomplete. */
export function tableIn(text: string, isCut: boolean, limits = LIMITS): Table {
  const declared = /^sep=(.)\r?\n/.exec(text);
  const body = declared ? text.slice(declared[0].length) : text;
  const all = rowsIn(body, declared?.[1] ?? separatorOf(body), limits.rows + 1);
  const complete = isCut && all.length <= limits.rows ? all.slice(0, -1) : all;
  const shown = complete.slice(0, limits.rows);
  const width = shown.reduce((most, row) => Math.max(most, row.length), 0);
  return {
    rows: shown.map((row) => row.slice(0, limits.columns).map((field) => (field.length > limits.field ? `${field.slice(0, limits.field)}…` : field))),
    hasMoreRows: isCut || complete.length > limits.rows,
    hasMoreColumns: width > limits.columns,
  };
}

/** Returns the separator that stands most often in the first line, outside of quotes. */
function separatorOf(text: string): string {
  const counts = new Map(SEPARATORS.map((separator) => [separator, 0]));
  let isQuoted = false;
  for (const character of text.slice(0, 20_000)) {
    if (character === '"') isQuoted = !isQuoted;
    else if (character === "\n" && !isQuoted) break;
    else if (!isQuoted && counts.has(character)) counts.set(character, counts.get(character)! + 1);
  }
  return SEPARATORS.reduce((best, separator) => (counts.get(separator)! > counts.get(best)! ? separator : best));
}

/** Reads at most so many rows. A quote within a field without quotes is part of it. */
function rowsIn(text: string, separator: string, most: number): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let field = "";
  let isQuoted = false;
  const endField = () => {
    row.push(field);
    field = "";
  };
  const endRow = () => {
    endField();
    // A blank line is no row.
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };
  for (let at = 0; at < text.length && rows.length < most; at += 1) {
    const character = text[at]!;
    if (isQuoted) {
      if (character !== '"') field += character;
      else if (text[at + 1] === '"') {
        field += '"';
        at += 1;
      } else isQuoted = false;
    } else if (character === '"' && field === "") isQuoted = true;
    else if (character === separator) endField();
    else if (character === "\n") endRow();
    else if (character !== "\r" || text[at + 1] !== "\n") field += character;
  }
  if (rows.length < most && (field !== "" || row.length > 0)) endRow();
  return rows;
}
