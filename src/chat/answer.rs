//! One message and its answer: shows updates as they come, asks the reader what the run asks, and cancels the run when
//! the reader interrupts.

use std::{io, time::Duration};

use tokio::{
    signal::unix::Signal,
    time::{Instant, sleep_until},
};
use uuid::Uuid;

use super::{
    asking::{Asking, Hearing},
    cancel::Cancel,
    client::{Client, Post},
    fold::{Fold, Outcome, Show},
    input::Lines,
    outage::Outage,
    screen::Screen,
    stream::{self, Update},
};

/// After this long without an event, the events have caught up.
const QUIET: Duration = Duration::from_millis(200);

/// What is waited for at most when all else is over.
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
    /// The run asks, and nobody is there to answer; it waits on.
    Waiting,
}

/// What is known of an answer on its way.
pub struct Answer<'a> {
    client: &'a Client,
    screen: &'a mut Screen,
    /// The conversation that the message is part of; known from the start, or with the first event.
    conversation: &'a mut Option<Uuid>,
    /// The agent of a conversation that is made for the message.
    agent: Option<Uuid>,
    fold: Fold,
    run: Option<Uuid>,
    outage: Outage,
    /// When the events have caught up, if none comes until then: what is not answered by then is worth asking.
    caught_up: Option<Instant>,
    asking: Asking,
    cancel: Cancel,
}

impl<'a> Answer<'a> {
    pub fn new(
        client: &'a Client,
        screen: &'a mut Screen,
        agent: Option<Uuid>,
        conversation: &'a mut Option<Uuid>,
    ) -> Self {
        Self {
            client,
            screen,
            agent,
            conversation,
            fold: Fold::default(),
            run: None,
            outage: Outage::None,
            caught_up: None,
            asking: Asking::default(),
            cancel: Cancel::default(),
        }
    }

    /// Sends the message and shows the answer, to the end of its run or to a question that nobody answers.
    pub async fn to(mut self, text: String, lines: &mut Lines, interrupts: &mut Signal) -> io::Result<Answered> {
        let post = Post { conversation: *self.conversation, agent: self.agent, text, key: Uuid::now_v7() };
        let mut updates = stream::follow(self.client.clone(), post);
        loop {
            if let Some(question) = self.asking.open() {
                self.screen.ask(question.prompt())?;
            }
            let caught_up = self.caught_up.unwrap_or_else(Instant::now);
            tokio::select! {
                update = updates.recv() => match update {
                    Some(update) => {
                        if let Some(answered) = self.take(update)? {
                            if let Some(hearing) = self.asking.last_words(LAST_WORDS).await {
                                self.show_hearing(hearing)?;
                            }
                            self.screen.end_answer()?;
                            return Ok(answered);
                        }
                    }
                    None => return Ok(Answered::NotWholly),
                },
                _ = interrupts.recv() => {
                    self.screen.leave_line()?;
                    if self.cancel.is_wanted() {
                        self.cancel.leave(LAST_WORDS).await;
                        return Ok(Answered::Interrupted);
                    }
                    self.asking = Asking::Idle;
                    self.cancel = Cancel::Wanted;
                    self.cancel.send(self.client, self.run);
                    self.screen.notice("[cancelling; Ctrl-C again quits]")?;
                }
                reason = self.outage.lasts() => {
                    self.screen.notice(&match self.run {
                        Some(_) => format!("reconnecting … ({reason})"),
                        None => format!("not sent yet; it is sent when the server answers again ({reason})"),
                    })?;
                    self.outage = Outage::Told;
                }
                () = sleep_until(caught_up), if self.has_to_ask() => {
                    if !self.screen.is_interactive() {
                        return self.leave_waiting();
                    }
                    self.ask(lines)?;
                }
                line = lines.answer(), if self.asking.open().is_some() => match (line, self.run) {
                    (Some(line), Some(run)) => {
                        self.screen.answered();
                        self.asking.answer(self.client, run, &line);
                    }
                    _ => return self.leave_waiting(),
                },
                hearing = self.asking.heard() => self.show_hearing(hearing)?,
            }
        }
    }

    /// Shows an update; answers with the end, if this is it.
    fn take(&mut self, update: Update) -> io::Result<Option<Answered>> {
        match update {
            Update::Connected(run) => {
                if self.run.is_none() && self.outage.is_told() {
                    self.screen.notice("[sent]")?;
                }
                self.run = Some(run);
                self.caught_up = Some(Instant::now() + QUIET);
                self.outage.interrupted();
                self.cancel.send(self.client, self.run);
            }
            Update::Lost(reason) => {
                self.caught_up = None;
                self.outage.begin(reason);
            }
            Update::Refused(detail) => {
                self.screen.error(&detail)?;
                return Ok(Some(Answered::NotWholly));
            }
            Update::Event(event) => {
                self.outage = Outage::None;
                self.caught_up = Some(Instant::now() + QUIET);
                let shows = self.fold.apply(event);
                self.show(shows)?;
            }
            Update::Ended(run) => {
                let shows = self.fold.finish(run);
                self.show(shows)?;
            }
        }
        if self.asking.settle(self.fold.questions()) {
            self.screen.notice("[nobody has to answer this any more]")?;
        }
        Ok(self.fold.outcome().map(|outcome| match (outcome, self.cancel.is_sent()) {
            (Outcome::Completed, _) => Answered::Wholly,
            (Outcome::Cancelled, true) => Answered::Cancelled,
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

    fn has_to_ask(&self) -> bool {
        let is_wanted = self.asking.is_idle() && !self.cancel.is_wanted();
        is_wanted && self.caught_up.is_some() && !self.fold.questions().is_empty()
    }

    /// Puts the first open question to the reader.
    fn ask(&mut self, lines: &mut Lines) -> io::Result<()> {
        if let Some(question) = self.fold.questions().first() {
            self.screen.question(&question.text())?;
            lines.set_aside();
            self.asking = Asking::Open(question.clone());
        }
        Ok(())
    }

    /// Says what is open and how it can be answered elsewhere.
    fn leave_waiting(&mut self) -> io::Result<Answered> {
        if let Some(run) = self.run {
            self.screen.notice(&format!("[run {run} waits until it is answered]"))?;
            for question in self.fold.questions() {
                self.screen.error(&question.text())?;
                self.screen.error(&self.client.curl(run, &question.path(), &question.example()))?;
            }
        }
        Ok(Answered::Waiting)
    }

    fn show_hearing(&mut self, hearing: Hearing) -> io::Result<()> {
        // The event that resolves it may have come before the server's word.
        self.asking.settle(self.fold.questions());
        match hearing {
            Hearing::Accepted => Ok(()),
            Hearing::TooLate(reason) => self.screen.notice(&format!("[{reason}]")),
            Hearing::Refused(reason) => self.screen.error(&reason),
        }
    }
}
