// The frame of the page gives these to each page of the knowledge.
export interface Frame {
  isListShown: boolean;
  onShowList(): void;
  /** The number of conversations that wait for the reader. */
  waiting: number;
}
