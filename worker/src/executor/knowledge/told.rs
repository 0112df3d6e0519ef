//! The passages that a run has before its model, by the numbers of their marks.

use std::collections::{BTreeSet, HashMap};

use holdfast_knowledge::{FoundPassage, PassageId};
use holdfast_shared::{
    citation::{Citation, DropReason, DroppedMark},
    event::RetrievedPassage,
    storage::ToldPassage,
};

use super::{
    marks::{CitationMark, MarkReader, TextPiece},
    quoted_words::occurs,
};

/// Most marks of one step that are listed as dropped.
const MAX_DROPPED: usize = 100;

/// A passage with its number.
pub type NumberedPassage = (u32, FoundPassage);

/// The passages of a run, and what its answer has cited of them.
#[derive(Default)]
pub struct Told {
    /// Passages by their numbers, from 1. `None`: the owner may not read it any more.
    passages: Vec<(PassageId, Option<FoundPassage>)>,
    numbers: HashMap<PassageId, u32>,
    /// Passages that the database was asked about in this step, and those that the owner can still read.
    asked: BTreeSet<u32>,
    readable: BTreeSet<u32>,
    cited: BTreeSet<u32>,
    /// Marks of the step that are not in its text.
    dropped: Vec<DroppedMark>,
    reader: MarkReader,
}

impl Told {
    /// Restores what earlier attempts have told, as far as it is found, and returns what came with the run's input. `text`
    /// is the answer so far.
    pub fn restore(&mut self, told: Vec<ToldPassage>, found: Vec<FoundPassage>, text: &str) -> Vec<NumberedPassage> {
        let mut found: HashMap<PassageId, FoundPassage> = found.into_iter().map(|found| (found.id, found)).collect();
        let mut with_input = Vec::new();
        for told in told {
            let id = PassageId { document_id: told.document_id, number: told.passage };
            let passage = found.remove(&id).map(|passage| FoundPassage { score: told.score, ..passage });
            if let Some(passage) = passage.as_ref().filter(|_| told.call_id.is_none()) {
                with_input.push((told.number, passage.clone()));
            }
            self.passages.push((id, passage));
            self.numbers.insert(id, self.passages.len() as u32);
        }
        let mut reader = MarkReader::default();
        for piece in reader.push(text).into_iter().chain(reader.finish()) {
            if let TextPiece::Mark(mark) = piece {
                self.cited.extend(mark.numbers.iter().filter_map(|number| u32::try_from(*number).ok()));
            }
        }
        with_input
    }

    /// Gives numbers to passages that a call has found, or the search for the run's input. Returns all of them with their
    /// numbers, and those that are new.
    pub fn tell(
        &mut self,
        found: Vec<FoundPassage>,
        call_id: Option<&str>,
    ) -> (Vec<NumberedPassage>, Vec<ToldPassage>) {
        let (mut numbered, mut new) = (Vec::new(), Vec::new());
        for passage in found {
            let number = match self.numbers.get(&passage.id) {
                Some(number) => {
                    self.passages[*number as usize - 1].1 = Some(passage.clone());
                    *number
                }
                None => {
                    self.passages.push((passage.id, Some(passage.clone())));
                    let number = self.passages.len() as u32;
                    self.numbers.insert(passage.id, number);
                    let PassageId { document_id, number: of_document } = passage.id;
                    new.push(ToldPassage {
                        number,
                        document_id,
                        passage: of_document,
                        score: passage.score,
                        call_id: call_id.map(str::to_owned),
                    });
                    number
                }
            };
            numbered.push((number, passage));
        }
        (numbered, new)
    }

    /// Returns the passages of these numbers that the owner could read when this attempt began.
    pub fn of_numbers(&self, numbers: impl IntoIterator<Item = u32>) -> Vec<NumberedPassage> {
        let numbers = numbers.into_iter();
        numbers.filter_map(|number| Some((number, self.passage(number.into())?.clone()))).collect()
    }

    /// Forgets all that belongs to an earlier step.
    pub fn begin_step(&mut self) {
        self.asked.clear();
        self.readable.clear();
        self.dropped.clear();
        self.reader = MarkReader::default();
    }

    /// Returns the pieces of the text that are complete with this one.
    pub fn read(&mut self, text: &str) -> Vec<TextPiece> {
        self.reader.push(text)
    }

    /// Returns the rest of the step's text.
    pub fn read_rest(&mut self) -> Vec<TextPiece> {
        self.reader.finish()
    }

    /// Returns the passages of a mark whose reader must be asked for, once in a step.
    pub fn unasked(&mut self, mark: &CitationMark) -> Vec<PassageId> {
        let known = mark.numbers.iter().filter_map(|number| Some((*number as u32, self.passage(*number)?.id)));
        let unasked: Vec<(u32, PassageId)> = known.filter(|(number, _)| !self.asked.contains(number)).collect();
        self.asked.extend(unasked.iter().map(|(number, _)| *number));
        unasked.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns all passages.
    pub fn ids(&self) -> Vec<PassageId> {
        self.passages.iter().map(|(id, _)| *id).collect()
    }

    /// Forgets the texts of passages that are not among those that the owner may read now.
    pub fn keep_readable(&mut self, found: &[FoundPassage]) {
        let found: BTreeSet<PassageId> = found.iter().map(|passage| passage.id).collect();
        for (id, passage) in &mut self.passages {
            passage.take_if(|_| !found.contains(id));
        }
    }

    /// Notes passages that the owner may read now.
    pub fn note_readable(&mut self, found: &[FoundPassage]) {
        self.readable.extend(found.iter().filter_map(|passage| self.numbers.get(&passage.id)));
    }

    /// Returns a mark for each number that passes, and the citations that are new. The other numbers are dropped.
    pub fn settle(&mut self, mark: &CitationMark) -> (String, Vec<(u32, Citation)>) {
        let (mut passed, mut new) = (Vec::new(), Vec::new());
        for number in &mark.numbers {
            match self.check(*number, &mark.quotations) {
                Ok(citation) => {
                    passed.push(format!("[{number}]"));
                    if self.cited.insert(*number as u32) {
                        new.push((*number as u32, citation));
                    }
                }
                Err(reason) if self.dropped.len() < MAX_DROPPED => {
                    self.dropped.push(DroppedMark { number: *number, reason });
                }
                Err(_) => {}
            }
        }
        let text = if passed.is_empty() { String::new() } else { format!("{}{}", mark.before, passed.concat()) };
        (text, new)
    }

    /// Returns the marks that the step has lost.
    pub fn take_dropped(&mut self) -> Vec<DroppedMark> {
        std::mem::take(&mut self.dropped)
    }

    fn check(&self, number: u64, quotations: &[String]) -> Result<Citation, DropReason> {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let told = at.and_then(|at| self.passages.get(at)).ok_or(DropReason::NotTold)?;
        let passage = told.1.as_ref().filter(|_| self.readable.contains(&(number as u32)));
        let passage = passage.ok_or(DropReason::NotReadable)?;
        if !quotations.iter().all(|quotation| occurs(quotation, &passage.text)) {
            return Err(DropReason::NotQuoted);
        }
        Ok(citation_of(passage))
    }

    fn passage(&self, number: u64) -> Option<&FoundPassage> {
        self.passages.get(usize::try_from(number).ok()?.checked_sub(1)?)?.1.as_ref()
    }
}

fn citation_of(passage: &FoundPassage) -> Citation {
    let place = &passage.place;
    Citation {
        id: passage.id.document_id,
        chunk: passage.id.number,
        title: passage.title.clone(),
        page: place.page,
        start: place.start,
        end: place.end,
        score: passage.score,
    }
}

/// Returns a passage as events name it.
pub fn retrieved((number, passage): &NumberedPassage) -> RetrievedPassage<'_> {
    RetrievedPassage {
        number: *number,
        document: passage.id.document_id,
        chunk: passage.id.number,
        title: passage.title.as_str().into(),
        page: passage.place.page,
        score: passage.score,
    }
}

/// Returns passages as the model reads them. `run` is in the first and the last line of each, so that no author of a document can
/// begin or end one.
pub fn shown(passages: &[NumberedPassage], run: &str) -> String {
    let one = |(number, passage): &NumberedPassage| shown_as(*number, passage, run);
    passages.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Returns how many of the passages, the first ones, the model can read in so many characters.
pub fn fitting(found: &[FoundPassage], run: &str, most: usize) -> usize {
    let mut left = most;
    let fits = |passage: &&FoundPassage| {
        let chars = shown_as(u32::MAX, passage, run).chars().count() + 1;
        left.checked_sub(chars).inspect(|rest| left = *rest).is_some()
    };
    found.iter().take_while(fits).count()
}

fn shown_as(number: u32, passage: &FoundPassage, run: &str) -> String {
    let title = passage.title.replace(['[', ']', '\n'], " ");
    let page = passage.place.page.map(|page| format!(", page {page}")).unwrap_or_default();
    let id = passage.id.document_id;
    let (start, end) = (passage.place.start, passage.place.end);
    format!(
        "[Passage {number} of {title}{page}, document {id} from {start} to {end}, for {run}]\n{}\n[End of passage {number} for {run}]",
        passage.text
    )
}

#[cfg(test)]
mod tests {
    use holdfast_knowledge::NewPassage;
    use uuid::Uuid;

    use super::*;

    fn passage(number: u64, text: &str) -> FoundPassage {
        FoundPassage {
            id: PassageId { document_id: Uuid::nil(), number },
            title: "t".into(),
            place: NewPassage { number, start: 0, end: 9, page: None, heading: None },
            text: text.into(),
            score: 0.5,
        }
    }

    fn mark(numbers: &[u64], quotation: Option<&str>) -> CitationMark {
        let quotations = quotation.into_iter().map(Into::into).collect();
        CitationMark { before: " ".into(), numbers: numbers.to_vec(), quotations }
    }

    #[test]
    fn a_mark_passes_only_for_a_known_and_readable_passage_with_its_quotation() {
        let mut told = Told::default();
        let (numbered, new) = told.tell(vec![passage(4, "the log is durable"), passage(7, "b")], None);
        assert_eq!(numbered.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2]);
        let again = told.tell(vec![passage(7, "b")], Some("call"));
        assert_eq!((new.len(), again), (2, (vec![(2, passage(7, "b"))], Vec::new())));
        assert_eq!(told.unasked(&mark(&[1, 2, 3, 0], None)).len(), 2);
        assert_eq!(told.unasked(&mark(&[1, 2], None)).len(), 0, "the database is asked once");
        told.note_readable(&[passage(4, "")]);
        let settle = |told: &mut Told, mark: CitationMark| {
            let (text, new) = told.settle(&mark);
            (text, new.iter().map(|(number, _)| *number).collect::<Vec<_>>())
        };
        assert_eq!(settle(&mut told, mark(&[1], Some("log is durable"))), (" [1]".into(), vec![1]));
        assert_eq!(settle(&mut told, mark(&[1], None)), (" [1]".into(), vec![]), "a citation is new once");
        assert_eq!(settle(&mut told, mark(&[1], Some("log was durable"))), (String::new(), vec![]));
        assert_eq!(settle(&mut told, mark(&[2, 1, 9], None)), (" [1]".into(), vec![]));
        (0..200).for_each(|_| drop(told.settle(&mark(&[9], None))));
        let listed = told.take_dropped();
        assert_eq!(listed.len(), MAX_DROPPED);
        let dropped: Vec<(u64, DropReason)> =
            listed.into_iter().take(3).map(|mark| (mark.number, mark.reason)).collect();
        assert_eq!(dropped, [(1, DropReason::NotQuoted), (2, DropReason::NotReadable), (9, DropReason::NotTold)]);
    }

    #[test]
    fn a_later_attempt_knows_the_numbers_and_what_was_cited() {
        let mut told = Told::default();
        let earlier = |number, passage, call_id: Option<&str>| {
            let call_id = call_id.map(str::to_owned);
            ToldPassage { number, document_id: Uuid::nil(), passage, score: 0.25, call_id }
        };
        let all = vec![earlier(1, 4, None), earlier(2, 7, None), earlier(3, 9, Some("call"))];
        let restored = told.restore(all, vec![passage(7, "b"), passage(9, "d")], "a [2]");
        let scored = |number, text| FoundPassage { score: 0.25, ..passage(number, text) };
        assert_eq!(restored, [(2, scored(7, "b"))], "what a call has found is in its result");
        assert_eq!(told.of_numbers([1, 3, 4]), [(3, scored(9, "d"))]);
        told.note_readable(&[passage(7, "b"), passage(4, "")]);
        let (text, new) = told.settle(&mark(&[1, 2], None));
        assert_eq!((text.as_str(), new.len()), (" [2]", 0), "the text of the first is gone, the second was cited");
        let (numbered, _) = told.tell(vec![passage(8, "c"), passage(4, "again")], None);
        assert_eq!(numbered.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(told.of_numbers([1, 2]).len(), 2, "a passage that was found again has its text again");
        told.keep_readable(&[passage(7, "")]);
        assert_eq!(told.of_numbers([1, 2, 4]), [(2, scored(7, "b"))]);
    }

    #[test]
    fn a_result_has_as_many_passages_as_fit_whole() {
        let found = [passage(1, "four"), passage(2, "five.")];
        let chars = |number, passage| shown(&[(number, passage)], "run").chars().count() + 1;
        let first = chars(u32::MAX, found[0].clone());
        let both = first + chars(u32::MAX, found[1].clone());
        for (most, expected) in [(first - 1, 0), (first, 1), (both - 1, 1), (both, 2)] {
            assert_eq!(fitting(&found, "run", most), expected, "{most}");
        }
    }
}
