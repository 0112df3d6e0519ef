//! An estimate of the tokens that a text has for a model.
//!
//! Each provider counts differently and reports its count afterwards. A budget needs one number before the call, equal
//! in every process. Four letters of a Latin script count as one token, and so does one character of Chinese, Japanese
//! or Korean.

/// Tokens of a message beside its text: its role and its end.
pub const PER_MESSAGE: u32 = 4;

/// Returns the tokens of a text, rounded up.
pub fn estimate(text: &str) -> u32 {
    let quarters: u64 = text.chars().map(quarters_of).sum();
    u32::try_from(quarters.div_ceil(4)).unwrap_or(u32::MAX)
}

/// Returns the beginning of a text that has at most so many tokens.
pub fn beginning(text: &str, most: u32) -> &str {
    let mut left = u64::from(most) * 4;
    let end = text.char_indices().find(|(_, character)| match left.checked_sub(quarters_of(*character)) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// Returns the quarters of a token that a character counts for.
pub const fn quarters_of(character: char) -> u64 {
    match character.len_utf8() {
        1 => 1,
        2 => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_letters_or_one_ideograph_are_about_a_token() {
        let check = |text: &str, expected| assert_eq!(estimate(text), expected, "{text}");
        check("", 0);
        check("a", 1);
        check("harbour!", 2);
        check("为什么会这样？", 7);
        check("über", 2);
    }

    #[test]
    fn a_beginning_has_at_most_so_many_tokens() {
        let check = |text: &str, most, expected| assert_eq!(beginning(text, most), expected, "{text}");
        check("harbour!", 2, "harbour!");
        check("harbour!", 1, "harb");
        check("为什么", 2, "为什");
        check("abc", 0, "");
    }
}
