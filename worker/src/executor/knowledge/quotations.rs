//! Random quotations of random passages: a mark passes exactly if the passage has the words before it.

use holdfast_knowledge::{FoundPassage, NewPassage, PassageId};
use proptest::{collection::vec, prelude::*};
use uuid::Uuid;

use super::{marks::TextPiece, told::Told};

/// Few and short words, so that a random quotation often occurs by chance.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ab]{1,2}",
        1 => "[ab][.,;:!?]",
        1 => prop::sample::select(&["日本", "é", "e\u{301}", "👍🏽", "ä", "A"][..]).prop_map(str::to_owned),
    ]
}

/// White space as a text may have it between two words.
fn space() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&[" ", "  ", "\n", "\r\n", "\t", "\u{a0}", "\u{3000}", "\n\n"][..])
}

fn words(most: usize) -> impl Strategy<Value = Vec<(String, &'static str)>> {
    vec((word(), space()), 1..most)
}

/// A passage, and a quotation of parts that have other words between them.
#[derive(Debug, Clone)]
struct QuotedPassage {
    passage: String,
    parts: Vec<Vec<String>>,
    quotation: String,
}

fn text_of(words: &[(String, &str)]) -> String {
    words.iter().map(|(word, space)| format!("{word}{space}")).collect()
}

/// A quotation of any words, or of those of the passage from some places on.
fn quoted() -> impl Strategy<Value = QuotedPassage> {
    let taken = vec((any::<prop::sample::Index>(), 1_usize..5), 1..4);
    let parts = prop_oneof![vec(words(4), 1..3).prop_map(QuotedWords::Random), taken.prop_map(QuotedWords::Taken)];
    let ellipsis = prop::sample::select(&[" … ", "…", " ... "][..]);
    (words(30), parts, ellipsis).prop_map(|(passage, parts, ellipsis)| {
        let parts: Vec<Vec<(String, &str)>> = match parts {
            QuotedWords::Random(parts) => parts,
            QuotedWords::Taken(places) => {
                let mut starts: Vec<(usize, usize)> =
                    places.iter().map(|(place, words)| (place.index(passage.len()), *words)).collect();
                starts.sort_unstable();
                let part = |(start, words): (usize, usize)| passage[start..].iter().take(words).cloned().collect();
                starts.into_iter().map(part).collect()
            }
        };
        let texts: Vec<String> = parts.iter().map(|part| text_of(part).trim().to_owned()).collect();
        QuotedPassage {
            passage: text_of(&passage),
            parts: parts.iter().map(|part| part.iter().map(|(word, _)| word.clone()).collect()).collect(),
            quotation: texts.join(ellipsis),
        }
    })
}

#[derive(Debug, Clone)]
enum QuotedWords {
    Random(Vec<Vec<(String, &'static str)>>),
    Taken(Vec<(prop::sample::Index, usize)>),
}

/// Returns whether the parts occur one after the other, by trying all places.
fn occurs_somewhere(parts: &[String], passage: &str) -> bool {
    let Some((first, rest)) = parts.split_first() else { return true };
    let mut places =
        passage.char_indices().map(|(at, _)| &passage[at..]).filter(|from| from.starts_with(first.as_str()));
    places.any(|from| occurs_somewhere(rest, &from[first.len()..]))
}

/// Returns what the client sees of an answer that comes in these pieces.
fn shown(told: &mut Told, answer: &[String]) -> String {
    let mut pieces: Vec<TextPiece> = answer.iter().flat_map(|text| told.read(text)).collect();
    pieces.extend(told.read_rest());
    let mut shown = String::new();
    for piece in pieces {
        match piece {
            TextPiece::Text(text) => shown.push_str(&text),
            TextPiece::Mark(mark) => shown.push_str(&told.settle(&mark).0),
        }
    }
    shown
}

proptest! {
    #[test]
    fn a_mark_passes_exactly_if_the_passage_has_the_words_before_it(quoted in quoted(), cut in 1_usize..20) {
        let passage = FoundPassage {
            id: PassageId { document_id: Uuid::nil(), number: 0 },
            title: "t".into(),
            place: NewPassage { number: 0, start: 0, end: 9, page: None, heading: None },
            text: quoted.passage.clone(),
            score: 0.5,
        };
        let mut told = Told::default();
        told.tell(vec![passage.clone()], None);
        told.note_readable(&[passage]);
        let before = format!("It says “{}”", quoted.quotation);
        let answer: Vec<char> = format!("{before} [1]. It ends.").chars().collect();
        let pieces: Vec<String> = answer.chunks(cut).map(|piece| piece.iter().collect()).collect();

        let is_punctuation = |c: char| ".,;:!?".contains(c);
        let parts = quoted.parts.iter().map(|words| words.join(" ").trim_end_matches(is_punctuation).to_owned());
        let normal = quoted.passage.split_whitespace().collect::<Vec<_>>().join(" ");
        let occurs = occurs_somewhere(&parts.collect::<Vec<_>>(), &normal);
        let expected = if occurs { format!("{before} [1]. It ends.") } else { format!("{before}. It ends.") };
        prop_assert_eq!(shown(&mut told, &pieces), expected);
        prop_assert_eq!(told.take_dropped().len(), usize::from(!occurs));
    }
}
