// The beginning of a CSV file as a table, whose first row has the names of the columns.
import { useMemo } from "react";

import { texts } from "../../i18n/previews";
import { tableIn } from "./csv";
import "./preview.css";

type Props = {
  name: string;
  text: string;
  isCut: boolean;
  /** Says where the reader finds the rest. */
  rest: string;
};

export function DataTable({ name, text, isCut, rest }: Props) {
  const { rows, hasMoreRows, hasMoreColumns } = useMemo(() => tableIn(text, isCut), [text, isCut]);
  const [head, ...body] = rows;
  const numbers = useMemo(() => (head ?? []).map((_, column) => isOfNumbers(body.map((row) => row[column] ?? ""))), [rows]);
  if (!head) return <p className="preview-note">{texts.empty}</p>;
  return (
    <>
      <div className="data-table" role="region" tabIndex={0} aria-label={texts.table(name)}>
        <table>
          <thead>
            <tr>
              {head.map((field, column) => (
                <th key={column} scope="col" dir="auto" data-number={numbers[column] || undefined}>
                  {field}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {body.map((row, index) => (
              <tr key={index}>
                {row.map((field, column) => (
                  <td key={column} dir="auto" data-number={numbers[column] || undefined}>
                    {field}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {(hasMoreRows || hasMoreColumns) && <p className="preview-note">{texts.cutTable(rows.length)} {rest}</p>}
    </>
  );
}

/** Numbers stand at the end of their column, one below the other. */
function isOfNumbers(fields: readonly string[]): boolean {
  const filled = fields.filter((field) => field.trim() !== "");
  return filled.length > 0 && filled.every((field) => /^[-+]?[\d.,\s]*\d\s*[%€$£¥]?$/.test(field.trim()));
}
