// The words of files.
import { apart } from "../apart";

export const files = {
  files: {
    add: "Add files",
    choose: "Choose files",
    photo: "Take a photo",
    list: "Files of this message",
    ofTools: "Files from tools",
    drop: "Drop the files here",
    notHere: "Files can be added in a conversation.",
    noFolder: "Folders cannot be added. Add the files in them.",
    tooMany: (most: number) => `A message has at most ${most} files.`,
    remove: (name: string) => `Remove ${apart(name)}`,
    cancel: (name: string) => `Stop the upload of ${apart(name)}`,
    retry: (name: string) => `Try again to upload ${apart(name)}`,
    open: (name: string) => `Show ${apart(name)}`,
    download: (name: string) => `Download ${apart(name)}`,
    save: "Download",
    deleted: "deleted",
    notRead: "The file could not be read.",
    progress: (name: string) => `Upload of ${apart(name)}`,
    failed: "not uploaded",
    uploading: (name: string) => `${apart(name)} is being uploaded.`,
    uploaded: (name: string) => `${apart(name)} is uploaded.`,
    notUploaded: (name: string, reason: string) => `${apart(name)} was not uploaded. ${reason}`,
    removed: (name: string) => `${apart(name)} is removed.`,
    wait: "Waiting for the upload",
    mend: "Try the failed upload again, or remove its file",
    refused: { video: "Videos cannot be sent here.", audio: "Sound cannot be sent here.", other: "A file of this kind cannot be sent here." } as Record<string, string>,
    reason: {
      unreachable: "The server cannot be reached.",
      file_unreadable: "The file cannot be read. It may have been moved, deleted or changed.",
      silent: "The server has stopped answering.",
    } as Record<string, string>,
  },
};
