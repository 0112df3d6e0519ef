//! Pictures within the provider's limits. A larger one is replaced by its line, or fails the request if the answer is about it.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::rules::{FEW_PICTURES, PICTURE_BYTES, PICTURE_SIDE, PICTURE_SIDE_OF_MANY};
use crate::model::{Error, ModelFile, UserPart, alternation::SideMessage, subject::Subject};

/// Type and size of a picture, by its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureSize {
    pub media_type: &'static str,
    width: u32,
    height: u32,
}

/// Fits the pictures of a conversation into the limits. Beyond twenty pictures, sides must be shorter; so if one is longer,
/// the oldest pictures beyond twenty give way, as far as they may.
pub fn fit(sides: &mut [SideMessage<'_>], subject: &Subject) -> Result<(), Error> {
    for part in picture_parts(sides) {
        replace_if(part, subject, problem_of_one)?;
    }
    let is_long = |file: &ModelFile| longest_side(file) > PICTURE_SIDE_OF_MANY;
    let count = picture_parts(sides).count();
    if count <= FEW_PICTURES || !picture_parts(sides).any(|part| picture_in(part).is_some_and(is_long)) {
        return Ok(());
    }
    let mut beyond = count - FEW_PICTURES;
    for part in picture_parts(sides).filter(|part| picture_in(part).is_some_and(|file| file.instead.is_some())) {
        if beyond > 0 {
            use_line(part);
            beyond -= 1;
        }
    }
    if beyond > 0 {
        for part in picture_parts(sides) {
            replace_if(part, subject, |file| {
                is_long(file).then(|| {
                    format!("of more than {FEW_PICTURES} pictures, none may have more than {PICTURE_SIDE_OF_MANY} pixels a side")
                })
            })?;
        }
    }
    Ok(())
}

fn problem_of_one(file: &ModelFile) -> Option<String> {
    if file.data.len() > PICTURE_BYTES {
        return Some(format!("a picture may have at most {} MB in base64", PICTURE_BYTES / 1024 / 1024));
    }
    (longest_side(file) > PICTURE_SIDE).then(|| format!("a picture may have at most {PICTURE_SIDE} pixels a side"))
}

/// Replaces a picture that has a problem by its line. Fails if it has none.
fn replace_if(
    part: &mut UserPart,
    subject: &Subject,
    problem: impl FnOnce(&ModelFile) -> Option<String>,
) -> Result<(), Error> {
    let Some((file, problem)) = picture_in(part).and_then(|file| Some((file, problem(file)?))) else { return Ok(()) };
    if file.instead.is_none() {
        let message = format!("the picture {:?} is too large for it: {problem}; send a smaller one", file.name);
        return Err(Error::Refused { model: subject.choice.clone(), status: 413, message });
    }
    use_line(part);
    Ok(())
}

fn use_line(part: &mut UserPart) {
    if let Some(line) = picture_in(part).and_then(|file| file.instead.clone()) {
        *part = UserPart::Text(line);
    }
}

/// Returns the parts with pictures, oldest first.
fn picture_parts<'m>(sides: &'m mut [SideMessage<'_>]) -> impl Iterator<Item = &'m mut UserPart> {
    let parts = sides.iter_mut().flat_map(|side| match side {
        SideMessage::User { parts, .. } => parts.as_mut_slice(),
        SideMessage::Assistant { .. } => &mut [],
    });
    parts.filter(|part| picture_in(part).is_some())
}

fn picture_in(part: &UserPart) -> Option<&ModelFile> {
    match part {
        UserPart::File(file) if file.is_picture() => Some(file),
        _ => None,
    }
}

/// Returns the pixels of the longest side, or 0 if the bytes do not tell them.
fn longest_side(file: &ModelFile) -> u32 {
    measure(file).map_or(0, |size| size.width.max(size.height))
}

/// Reads type and size from the first bytes of a picture. The type may differ from the declared one, which the provider refuses.
pub fn measure(file: &ModelFile) -> Option<PictureSize> {
    // Only a JPEG may have its size behind other data.
    let is_jpeg = file.data.starts_with("/9j/");
    let length = if is_jpeg { file.data.len() } else { file.data.len().min(64) };
    let bytes = STANDARD.decode(&file.data.as_bytes()[..length]).ok()?;
    let size = |media_type, (width, height)| Some(PictureSize { media_type, width, height });
    match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => size("image/png", (big_u32(&bytes, 16)?, big_u32(&bytes, 20)?)),
        [b'G', b'I', b'F', b'8', ..] => size("image/gif", (little_u16(&bytes, 6)?, little_u16(&bytes, 8)?)),
        [0xFF, 0xD8, ..] => size("image/jpeg", size_of_jpeg(&bytes)?),
        [b'R', b'I', b'F', b'F', ..] if bytes.get(8..12) == Some(b"WEBP") => size("image/webp", size_of_webp(&bytes)?),
        _ => None,
    }
}

/// Reads the size from the frame's header, which follows segments of any length.
fn size_of_jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = *bytes.get(at + 1)?;
        match marker {
            _ if bytes[at] != 0xFF => return None,
            // A fill byte.
            0xFF => at += 1,
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) => {
                return Some((big_u16(bytes, at + 7)?, big_u16(bytes, at + 5)?));
            }
            0x01 | 0xD0..=0xD8 => at += 2,
            _ => at += 2 + usize::try_from(big_u16(bytes, at + 2)?).ok()?,
        }
    }
}

/// Reads the size from the first chunk: lossy, lossless or extended.
fn size_of_webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let little_u24 = |at: usize| Some(u32::from(*bytes.get(at + 2)?) << 16 | little_u16(bytes, at)?);
    match bytes.get(12..16)? {
        b"VP8 " => Some((little_u16(bytes, 26)? & 0x3FFF, little_u16(bytes, 28)? & 0x3FFF)),
        b"VP8L" => {
            let bits = little_u16(bytes, 21)? | little_u16(bytes, 23)? << 16;
            Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        b"VP8X" => Some((little_u24(24)? + 1, little_u24(27)? + 1)),
        _ => None,
    }
}

fn big_u16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?).into())
}

fn little_u16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?).into())
}

fn big_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdfast_shared::config::{ModelChoice, Provider};

    use super::*;
    use crate::model::{Turn, alternation::alternating};

    fn png(width: u32, height: u32) -> Vec<u8> {
        let head = [0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R'];
        [&head[..], &width.to_be_bytes(), &height.to_be_bytes(), &[8, 6, 0, 0, 0]].concat()
    }

    fn picture(name: &str, bytes: &[u8], instead: Option<&str>) -> UserPart {
        let data = STANDARD.encode(bytes).into();
        let (name, media_type, instead) = (name.into(), "image/png".into(), instead.map(Into::into));
        UserPart::File(Arc::new(ModelFile { name, media_type, data, instead }))
    }

    fn size(bytes: &[u8]) -> Option<(&'static str, u32, u32)> {
        let part = picture("a", bytes, None);
        measure(picture_in(&part).unwrap()).map(|size| (size.media_type, size.width, size.height))
    }

    #[test]
    fn every_kind_of_picture_tells_its_size() {
        assert_eq!(size(&png(70_000, 3)), Some(("image/png", 70_000, 3)));
        assert_eq!(size(b"GIF89a\x02\x01\x03\x00........"), Some(("image/gif", 258, 3)));
        let exif = [&[0xFF, 0xE1, 0x01, 0x00][..], &[0x55; 254]].concat();
        let frame = [0xFF, 0xC2, 0, 17, 8, 0x01, 0x02, 0x03, 0x04, 3];
        assert_eq!(size(&[&[0xFF, 0xD8][..], &exif, &frame].concat()), Some(("image/jpeg", 0x0304, 0x0102)));
        let riff = |chunk: &[u8]| [b"RIFF\0\0\0\0WEBP", chunk].concat();
        assert_eq!(size(&riff(b"VP8X\x0a\0\0\0\0\0\0\0\x1f\x03\0\x57\x02\0")), Some(("image/webp", 800, 600)));
        assert_eq!(size(&riff(b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x20\x03\x58\x02")), Some(("image/webp", 800, 600)));
        assert_eq!(size(&riff(b"VP8L\0\0\0\0\x2f\x1f\xc3\x95\x00")), Some(("image/webp", 800, 600)));
        assert_eq!(size(b"\xFF\xD8\xFF\xE1\xFF\xFF cut"), None);
        assert_eq!(size(b"no picture"), None);
    }

    /// Returns the texts that stand in place of pictures, and the number of pictures that are left.
    fn fitted(parts: Vec<UserPart>) -> Result<(Vec<String>, usize), String> {
        let turns = [Turn::User(parts)];
        let mut sides = alternating(&turns);
        let choice = ModelChoice { provider: Provider::Anthropic, name: "claude".into() };
        fit(&mut sides, &Subject::new(choice, None)).map_err(|error| error.to_string())?;
        let [SideMessage::User { parts, .. }] = &sides[..] else { panic!("{sides:?}") };
        let text = |part: &UserPart| match part {
            UserPart::Text(text) => Some(text.clone()),
            UserPart::File(_) | UserPart::Speaker(_) => None,
        };
        let texts: Vec<String> = parts.iter().filter_map(text).collect();
        let left = parts.len() - texts.len();
        Ok((texts, left))
    }

    #[test]
    fn a_picture_beyond_a_limit_gives_way_to_its_line_or_is_named() {
        let large = [&png(10, 10)[..], &vec![0; PICTURE_BYTES / 4 * 3 - 29]].concat();
        assert_eq!(fitted(vec![picture("a", &large, None), picture("b", &png(8_000, 1), None)]), Ok((vec![], 2)));
        let larger = [&large[..], b"x"].concat();
        for bytes in [&larger, &png(1, 8_001)] {
            assert_eq!(fitted(vec![picture("a", bytes, Some("[a]"))]), Ok((vec!["[a]".to_owned()], 0)));
            let error = fitted(vec![picture("b.png", bytes, None)]).unwrap_err();
            assert!(error.contains("\"b.png\"") && error.contains("send a smaller one"), "{error}");
        }
    }

    #[test]
    fn beyond_twenty_pictures_the_oldest_give_way_to_a_long_one() {
        let small = |n: usize| picture("s", &png(2_000, 2_000), Some(&format!("[{n}]")));
        let many = |last: UserPart| (0..20).map(small).chain([last]).collect::<Vec<_>>();
        assert_eq!(fitted(many(picture("n", &png(2_000, 1), None))), Ok((vec![], 21)));
        assert_eq!(fitted(many(picture("n", &png(2_001, 1), None))), Ok((vec!["[0]".to_owned()], 20)));
        let all_asked: Vec<_> = (0..21).map(|_| picture("n", &png(2_001, 1), None)).collect();
        assert!(fitted(all_asked).unwrap_err().contains("2000 pixels"));
    }
}
