import { apart } from "../apart";

export const previews: typeof import("../en/previews").previews = {
  loading: "正在读取",
  table: (name) => `${apart(name)} 的表格`,
  empty: "文件是空的。",
  cutTable: (rows) => `这是前 ${rows} 行。`,
  cut: (size) => `这是前 ${size}。`,
  download: "要查看全部内容，请下载文件。",
  inText: "文字中有全部内容。",
  asTable: "表格",
  asText: "文字",
};
