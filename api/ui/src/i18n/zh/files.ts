// 文件部分的文字。
import { apart } from "../apart";

export const files: typeof import("../en/files").files = {
  files: {
    add: "添加文件",
    choose: "选择文件",
    photo: "拍照",
    list: "这条消息的文件",
    ofTools: "工具返回的文件",
    drop: "把文件拖放到这里",
    notHere: "请在对话中添加文件。",
    noFolder: "不能添加文件夹，请添加其中的文件。",
    tooMany: (most) => `一条消息最多包含 ${most} 个文件。`,
    remove: (name) => `移除“${apart(name)}”`,
    cancel: (name) => `停止上传“${apart(name)}”`,
    retry: (name) => `重新上传“${apart(name)}”`,
    open: (name) => `查看“${apart(name)}”`,
    download: (name) => `下载“${apart(name)}”`,
    save: "下载",
    deleted: "已删除",
    notRead: "无法读取这个文件。",
    progress: (name) => `“${apart(name)}”的上传进度`,
    failed: "未上传",
    uploading: (name) => `正在上传“${apart(name)}”。`,
    uploaded: (name) => `“${apart(name)}”已上传。`,
    notUploaded: (name, reason) => `“${apart(name)}”没有上传。${reason}`,
    removed: (name) => `“${apart(name)}”已移除。`,
    wait: "正在等待文件上传",
    mend: "请重新上传失败的文件，或将它移除",
    refused: { video: "这里不能发送视频。", audio: "这里不能发送音频。", other: "这里不能发送这种文件。" } as Record<string, string>,
    reason: {
      unreachable: "无法连接服务器。",
      file_unreadable: "无法读取这个文件，它可能已被移动、删除或修改。",
      silent: "服务器没有继续响应。",
    },
  },
};
