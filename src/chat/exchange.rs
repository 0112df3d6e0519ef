//! One message and its answer. An exchange shows updates as they arrive, asks the reader the run's questions, and cancels
//! the run when the reader presses Ctrl-C.

use std::{collections::VecDeque, io, time::Duration};

use tokio::{
    signal::unix::Signal,
    sync::mpsc,
    time::{Instant, sleep_until},
};
use uuid::Uuid;

use super::{
    answer_state::{AnswerReceipt, AnswerState},
    cancel::Cancel,
    client::{ChatClient, Post, PostMode},
    fold::{DisplayItem, Fold, RunOutcome},
    input::{ExpectedLine, InputLines, TypedLine},
    outage::Outage,
    screen::Screen,
    stream::{self, Update},
};

/// After this time without an event, the exchange has received all earlier events.
const QUIET: Duration = Duration::from_millis(200);

/// Longest wait for a request that is still on its way when the exchange ends.
const FINAL_WAIT: Duration = Duration::from_millis(250);

/// The outcome of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeOutcome {
    /// The run completed.
    Complete,
    /// The run failed or was cancelled, or the message was refused.
    Incomplete,
    /// The run was cancelled by the reader.
    Cancelled,
    /// The reader pressed Ctrl-C twice and did not wait for the end.
    Interrupted,
    /// The run asks, and the input has no answer. The run continues to wait.
    Waiting,
}

/// The state of one message and its answer.
pub struct Exchange<'a> {
    client: &'a ChatClient,
    screen: &'a mut Screen,
    /// The message's conversation. A new conversation has its id from the first event on.
    conversation: &'a mut Option<Uuid>,
    /// The agent of a new conversation.
    agent: Option<Uuid>,
    fold: Fold,
    run: Option<Uuid>,
    outage: Outage,
    /// When all earlier events have arrived, unless another event comes before. The reader answers only questions that are
    /// still open at that time.
    quiet_at: Option<Instant>,
    answer: AnswerState,
    cancel: Cancel,
    /// Corrections that the reader has sent during the answer.
    corrections: &'a mut Corrections,
}

/// The runs of messages that join the answer under way. The run of a message that came too late answers it.
pub type Corrections = VecDeque<mpsc::Receiver<Update>>;

impl<'a> Exchange<'a> {
    pub fn new(
        client: &'a ChatClient,
        screen: &'a mut Screen,
        agent: Option<Uuid>,
        conversation: &'a mut Option<Uuid>,
        corrections: &'a mut Corrections,
    ) -> Self {
        Self {
            client,
            screen,
            agent,
            conversation,
            fold: Fold::on(client.url()),
            run: None,
            outage: Outage::None,
            quiet_at: None,
            answer: AnswerState::default(),
            cancel: Cancel::default(),
            corrections,
        }
    }

    /// Sends the message and shows the answer, until the run ends or asks a question that the input does not answer. Fails
    /// if the output cannot be written.
    pub async fn run(
        self,
        (text, files): (String, Vec<Uuid>),
        lines: &mut InputLines,
        interrupts: &mut Signal,
    ) -> io::Result<ExchangeOutcome> {
        let updates = self.post(text, files, PostMode::Enqueue);
        self.show_answer(updates, lines, interrupts).await
    }

    /// Sends a message, and returns the updates about it.
    fn post(&self, text: String, files: Vec<Uuid>, mode: PostMode) -> mpsc::Receiver<Update> {
        let key = Uuid::now_v7();
        let post = Post { conversation: *self.conversation, agent: self.agent, text, files, key, mode };
        stream::follow(self.client.clone(), post)
    }

    /// Shows the answer of a message that was sent.
    pub async fn show_answer(
        mut self,
        mut updates: mpsc::Receiver<Update>,
        lines: &mut InputLines,
        interrupts: &mut Signal,
    ) -> io::Result<ExchangeOutcome> {
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
                        None => format!("not sent yet; the chat sends it when the server responds again ({reason})"),
                    })?;
                    self.outage = Outage::Announced;
                }
                () = sleep_until(quiet_at), if self.must_ask() => {
                    if !self.screen.is_interactive() {
                        return self.end_waiting();
                    }
                    self.ask(lines)?;
                }
                line = lines.during_answer(self.expected_line()) => match (line, self.run) {
                    (TypedLine::Correction(text), _) => {
                        self.screen.note_enter();
                        let updates = self.post(text, Vec::new(), PostMode::Steer);
                        self.corrections.push_back(updates);
                    }
                    (TypedLine::Answer(line), Some(run)) => {
                        self.screen.note_enter();
                        self.answer.send(self.client, run, &line);
                    }
                    (TypedLine::Answer(_) | TypedLine::End, _) => return self.end_waiting(),
                },
                receipt = self.answer.receipt() => self.show_receipt(receipt)?,
            }
        }
    }

    /// Shows an update. Returns the outcome if the update ends the exchange.
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
            self.screen.notice("[this question is no longer open]")?;
        }
        Ok(self.fold.outcome().map(|outcome| match (outcome, self.cancel.is_sent()) {
            (RunOutcome::Completed, _) => ExchangeOutcome::Complete,
            (RunOutcome::Cancelled, true) => ExchangeOutcome::Cancelled,
            _ => ExchangeOutcome::Incomplete,
        }))
    }

    fn show(&mut self, items: Vec<DisplayItem>) -> io::Result<()> {
        for item in items {
            match item {
                DisplayItem::Conversation(id) if *self.conversation == Some(id) => continue,
                DisplayItem::Conversation(id) => *self.conversation = Some(id),
                _ => {}
            }
            self.screen.show(item)?;
        }
        Ok(())
    }

    fn must_ask(&self) -> bool {
        let is_wanted = self.answer.is_idle() && !self.cancel.is_wanted();
        is_wanted && self.quiet_at.is_some() && !self.fold.questions().is_empty()
    }

    /// Returns what the next line may be. In a pipe, each line is a message.
    fn expected_line(&self) -> ExpectedLine {
        let is_free = self.answer.is_idle() && self.fold.questions().is_empty() && !self.cancel.is_wanted();
        if self.answer.open().is_some() {
            ExpectedLine::Answer
        } else if is_free && self.conversation.is_some() && self.screen.is_interactive() {
            ExpectedLine::Correction
        } else {
            ExpectedLine::Message
        }
    }

    /// Asks the reader the first open question.
    fn ask(&mut self, lines: &mut InputLines) -> io::Result<()> {
        if let Some(question) = self.fold.questions().first() {
            self.screen.question(&question.text())?;
            lines.set_aside();
            self.answer = AnswerState::Open(question.clone());
        }
        Ok(())
    }

    /// Prints the open questions and the commands that answer them from a shell.
    fn end_waiting(&mut self) -> io::Result<ExchangeOutcome> {
        if let Some(run) = self.run {
            self.screen.notice(&format!("[run {run} waits for an answer]"))?;
            for question in self.fold.questions() {
                self.screen.error(&question.text())?;
                self.screen.error(&self.client.curl(run, &question.path(), &question.example()))?;
            }
        }
        Ok(ExchangeOutcome::Waiting)
    }

    fn show_receipt(&mut self, receipt: AnswerReceipt) -> io::Result<()> {
        // The event that resolves the question may have arrived before the response.
        self.answer.settle(self.fold.questions());
        match receipt {
            AnswerReceipt::Accepted => Ok(()),
            AnswerReceipt::TooLate(reason) => self.screen.notice(&format!("[{reason}]")),
            AnswerReceipt::Refused(reason) => self.screen.error(&reason),
        }
    }
}
