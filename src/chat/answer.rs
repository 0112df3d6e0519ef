//! One message and its answer: shows updates as they come, and cancels the run when the reader interrupts.

use std::{io, time::Duration};

use tokio::{signal::unix::Signal, task::JoinHandle};
use uuid::Uuid;

use super::{
    client::{Client, Failure, Post},
    fold::{Fold, Outcome, Show},
    outage::Outage,
    screen::Screen,
    stream::{self, Backoff, Update},
};

/// What a reader who quits waits for at most.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// To the end.
    Wholly,
    /// The run failed or was cancelled, or the message was refused.
    NotWholly,
    /// The reader has cancelled the run.
    Cancelled,
    /// The reader did not wait for the end.
    Interrupted,
}

/// What is known of an answer on its way.
pub struct Answer<'a> {
    client: &'a Client,
    screen: &'a mut Screen,
    /// The conversation that the message is part of; known from the start, or with the first event.
    conversation: &'a mut Option<Uuid>,
    fold: Fold,
    run: Option<Uuid>,
    outage: Outage,
    cancel: Cancel,
}

/// Whether the reader wants the run to end.
enum Cancel {
    Unwanted,
    Wanted,
    Sent(JoinHandle<()>),
}

impl<'a> Answer<'a> {
    pub fn new(client: &'a Client, screen: &'a mut Screen, conversation: &'a mut Option<Uuid>) -> Self {
        let (outage, cancel) = (Outage::None, Cancel::Unwanted);
        Self { client, screen, conversation, fold: Fold::default(), run: None, outage, cancel }
    }

    /// Sends the message and shows the answer, to the end of its run.
    pub async fn to(mut self, text: String, interrupts: &mut Signal) -> io::Result<Answered> {
        let post = Post { conversation: *self.conversation, text, key: Uuid::now_v7() };
        let mut updates = stream::follow(self.client.clone(), post);
        loop {
            tokio::select! {
                update = updates.recv() => match update {
                    Some(update) => {
                        if let Some(answered) = self.take(update)? {
                            self.screen.end_answer()?;
                            return Ok(answered);
                        }
                    }
                    None => return Ok(Answered::NotWholly),
                },
                _ = interrupts.recv() => {
                    self.screen.leave_line()?;
                    if !matches!(self.cancel, Cancel::Unwanted) {
                        self.quit().await;
                        return Ok(Answered::Interrupted);
                    }
                    self.cancel = Cancel::Wanted;
                    self.send_cancel();
                    self.screen.notice("[cancelling; Ctrl-C again quits]")?;
                }
                reason = self.outage.lasts() => {
                    self.screen.notice(&format!("reconnecting … ({reason})"))?;
                    self.outage = Outage::Told;
                }
            }
        }
    }

    /// Shows an update; answers with the end, if this is it.
    fn take(&mut self, update: Update) -> io::Result<Option<Answered>> {
        match update {
            Update::Connected(run) => {
                self.run = Some(run);
                self.outage.interrupted();
                self.send_cancel();
            }
            Update::Lost(reason) => self.outage.begin(reason),
            Update::Refused(detail) => {
                self.screen.error(&detail)?;
                return Ok(Some(Answered::NotWholly));
            }
            Update::Event(event) => {
                self.outage = Outage::None;
                let shows = self.fold.apply(event);
                self.show(shows)?;
            }
            Update::Ended(run) => {
                let shows = self.fold.finish(run);
                self.show(shows)?;
            }
        }
        Ok(self.fold.outcome().map(|outcome| match (outcome, &self.cancel) {
            (Outcome::Completed, _) => Answered::Wholly,
            (Outcome::Cancelled, Cancel::Sent(_)) => Answered::Cancelled,
            _ => Answered::NotWholly,
        }))
    }

    fn show(&mut self, shows: Vec<Show>) -> io::Result<()> {
        for show in shows {
            match show {
                Show::Conversation(id) if *self.conversation == Some(id) => continue,
                Show::Conversation(id) => *self.conversation = Some(id),
                _ => {}
            }
            self.screen.show(show)?;
        }
        Ok(())
    }

    /// Sends the reader's wish to cancel, once the run is known.
    fn send_cancel(&mut self) {
        if let (Cancel::Wanted, Some(run)) = (&self.cancel, self.run) {
            self.cancel = Cancel::Sent(tokio::spawn(cancel(self.client.clone(), run)));
        }
    }

    /// Leaves the request to cancel the time that it needs to get out.
    async fn quit(&mut self) {
        if let Cancel::Sent(task) = &mut self.cancel {
            let _ = tokio::time::timeout(LAST_WORDS, task).await;
        }
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        if let Cancel::Sent(task) = &self.cancel {
            task.abort();
        }
    }
}

/// Asks for the end of the run until the server has heard it. What it says to that comes with the run's events.
async fn cancel(client: Client, run: Uuid) {
    let mut backoff = Backoff::default();
    while let Err(Failure::Away(_)) = client.cancel(run).await {
        tokio::time::sleep(backoff.next_pause()).await;
    }
}
