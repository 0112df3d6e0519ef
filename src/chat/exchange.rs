//! One message and its answer: shows updates as they come, asks the reader what the run asks, and cancels the run when
//! the reader interrupts.

use std::{io, time::Duration};

use tokio::{
    signal::unix::Signal,
    time::{Instant, sleep_until},
};
use uuid::Uuid;

use super::{
    answer_state::{AnswerReceipt, AnswerState},
    cancel::Cancel,
    client::{ChatClient, Post},
    fold::{Fold, Outcome, Show},
    input::InputLines,
    outage::Outage,
    screen::Screen,
    stream::{self, Update},
};

/// After this long without an event, the events have caught up.
const QUIET: Duration = Duration::from_millis(200);

/// What is waited for at most when all else is over.
const FINAL_WAIT: Duration = Duration::from_millis(250);

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeOutcome {
    /// To the end.
    Complete,
    /// The run failed or was cancelled, or the message was refused.
    Incomplete,
    /// The reader has cancelled the run.
    Cancelled,
    /// The reader did not wait for the end.
    Interrupted,
    /// The run asks, and nobody is there to answer; it waits on.
    Waiting,
}

/// What is known of an answer on its way.
pub struct Exchange<'a> {
    client: &'a ChatClient,
    screen: &'a mut Screen,
    /// The conversation that the message is part of; known from the start, or with the first event.
    conversation: &'a mut Option<Uuid>,
    /// The agent of a conversation that is made for the message.
    agent: Option<Uuid>,
    fold: Fold,
    run: Option<Uuid>,
    outage: Outage,
    /// When the events have caught up, if none comes until then: what is not answered by then is worth asking.
    quiet_at: Option<Instant>,
    answer: AnswerState,
    cancel: Cancel,
}

impl<'a> Exchange<'a> {
    pub fn new(
        client: &'a ChatClient,
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
            quiet_at: None,
            answer: AnswerState::default(),
            cancel: Cancel::default(),
        }
    }

    /// Sends the message and shows the answer, to the end of its run or to a question that nobody answers.
    pub async fn run(
        mut self,
        text: String,
        lines: &mut InputLines,
        interrupts: &mut Signal,
    ) -> io::Result<ExchangeOutcome> {
        let post = Post { conversation: *self.conversation, agent: self.agent, text, key: Uuid::now_v7() };
        let mut updates = stream::follow(self.client.clone(), post);
        loop {
            if let Some(question) = self.answer.open() {
                self.screen.ask(question.prompt())?;
            }
            let quiet_at = self.quiet_at.unwrap_or_else(Instant::now);
            tokio::select! {
                update = updates.recv() => match update {
                    Some(update) => {
                        if let Some(outcome) = self.take(update)? {
                            if let Some(receipt) = self.answer.final_receipt(FINAL_WAIT).await {
                                self.show_receipt(receipt)?;
                            }
                            self.screen.end_answer()?;
                            return Ok(outcome);
                        }
                    }
                    None => return Ok(ExchangeOutcome::Incomplete),
                },
                _ = interrupts.recv() => {
                    self.screen.end_line()?;
                    if self.cancel.is_wanted() {
                        self.cancel.wait_until_sent(FINAL_WAIT).await;
                        return Ok(ExchangeOutcome::Interrupted);
                    }
                    self.answer = AnswerState::Idle;
                    self.cancel = Cancel::Wanted;
                    self.cancel.send(self.client, self.run);
                    self.screen.notice("[cancelling; Ctrl-C again quits]")?;
                }
                reason = self.outage.lasts() => {
                    self.screen.notice(&match self.run {
                        Some(_) => format!("reconnecting … ({reason})"),
                        None => format!("not sent yet; it is sent when the server answers again ({reason})"),
                    })?;
                    self.outage = Outage::Announced;
                }
                () = sleep_until(quiet_at), if self.must_ask() => {
                    if !self.screen.is_interactive() {
                        return self.end_waiting();
                    }
                    self.ask(lines)?;
                }
                line = lines.answer(), if self.answer.open().is_some() => match (line, self.run) {
                    (Some(line), Some(run)) => {
                        self.screen.note_enter();
                        self.answer.answer(self.client, run, &line);
                    }
                    _ => return self.end_waiting(),
                },
                receipt = self.answer.receipt() => self.show_receipt(receipt)?,
            }
        }
    }

    /// Shows an update; answers with the end, if this is it.
    fn take(&mut self, update: Update) -> io::Result<Option<ExchangeOutcome>> {
        match update {
            Update::Connected(run) => {
                if self.run.is_none() && self.outage.is_announced() {
                    self.screen.notice("[sent]")?;
                }
                self.run = Some(run);
                self.quiet_at = Some(Instant::now() + QUIET);
                self.outage.interrupted();
                self.cancel.send(self.client, self.run);
            }
            Update::Lost(reason) => {
                self.quiet_at = None;
                self.outage.begin(reason);
            }
            Update::Refused(detail) => {
                self.screen.error(&detail)?;
                return Ok(Some(ExchangeOutcome::Incomplete));
            }
            Update::Event(event) => {
                self.outage = Outage::None;
                self.quiet_at = Some(Instant::now() + QUIET);
                let shows = self.fold.apply(event);
                self.show(shows)?;
            }
            Update::Ended(run) => {
                let shows = self.fold.finish(run);
                self.show(shows)?;
            }
        }
        if self.answer.settle(self.fold.questions()) {
            self.screen.notice("[nobody has to answer this any more]")?;
        }
        Ok(self.fold.outcome().map(|outcome| match (outcome, self.cancel.is_sent()) {
            (Outcome::Completed, _) => ExchangeOutcome::Complete,
            (Outcome::Cancelled, true) => ExchangeOutcome::Cancelled,
            _ => ExchangeOutcome::Incomplete,
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

    fn must_ask(&self) -> bool {
        let is_wanted = self.answer.is_idle() && !self.cancel.is_wanted();
        is_wanted && self.quiet_at.is_some() && !self.fold.questions().is_empty()
    }

    /// Puts the first open question to the reader.
    fn ask(&mut self, lines: &mut InputLines) -> io::Result<()> {
        if let Some(question) = self.fold.questions().first() {
            self.screen.question(&question.text())?;
            lines.set_aside();
            self.answer = AnswerState::Open(question.clone());
        }
        Ok(())
    }

    /// Says what is open and how it can be answered elsewhere.
    fn end_waiting(&mut self) -> io::Result<ExchangeOutcome> {
        if let Some(run) = self.run {
            self.screen.notice(&format!("[run {run} waits until it is answered]"))?;
            for question in self.fold.questions() {
                self.screen.error(&question.text())?;
                self.screen.error(&self.client.curl(run, &question.path(), &question.example()))?;
            }
        }
        Ok(ExchangeOutcome::Waiting)
    }

    fn show_receipt(&mut self, receipt: AnswerReceipt) -> io::Result<()> {
        // The event that resolves it may have come before the server's word.
        self.answer.settle(self.fold.questions());
        match receipt {
            AnswerReceipt::Accepted => Ok(()),
            AnswerReceipt::TooLate(reason) => self.screen.notice(&format!("[{reason}]")),
            AnswerReceipt::Refused(reason) => self.screen.error(&reason),
        }
    }
}
