//! A picture of one colour, as the scripted model's tool draws it.

/// Pixels of each side.
const SIDE: u32 = 64;

/// Bytes of a row: the filter, and a bit for each pixel.
const ROW: usize = 1 + SIDE as usize / 8;

const NAMED: [(&str, [u8; 3]); 8] = [
    ("black", [0x1b, 0x1b, 0x1b]),
    ("blue", [0x1f, 0x5f, 0xbf]),
    ("green", [0x2e, 0x7d, 0x32]),
    ("orange", [0xef, 0x82, 0x1e]),
    ("red", [0xc6, 0x28, 0x28]),
    ("teal", [0x00, 0x80, 0x80]),
    ("white", [0xff, 0xff, 0xff]),
    ("yellow", [0xf5, 0xd0, 0x32]),
];

/// Returns a PNG of this colour, which is a name or `#rrggbb`; `None` for another text.
pub fn square(colour: &str) -> Option<Vec<u8>> {
    let rgb = match NAMED.iter().find(|(name, _)| *name == colour) {
        Some((_, rgb)) => *rgb,
        None => {
            // A number may have a sign, and a colour has none.
            let is_colour = |digits: &&str| digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let digits = colour.strip_prefix('#').filter(is_colour)?;
            let [_, rgb @ ..] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
            rgb
        }
    };
    // One bit a pixel, by the palette's only colour.
    let header = [&SIDE.to_be_bytes()[..], &SIDE.to_be_bytes(), &[1, 3, 0, 0, 0]].concat();
    let pixels = vec![0; ROW * SIDE as usize];
    let bytes = pixels.len() as u16;
    // A stored block of zlib. The checksum of zeros counts them.
    let data = [
        &[0x78, 0x01, 0x01][..],
        &bytes.to_le_bytes(),
        &(!bytes).to_le_bytes(),
        &pixels,
        &bytes.to_be_bytes(),
        &1u16.to_be_bytes(),
    ];
    let chunks = [chunk(b"IHDR", &header), chunk(b"PLTE", &rgb), chunk(b"IDAT", &data.concat()), chunk(b"IEND", &[])];
    Some([b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat()].concat())
}

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let named = [kind, data].concat();
    [&(data.len() as u32).to_be_bytes()[..], &named, &crc(&named).to_be_bytes()].concat()
}

/// Returns the CRC-32 of the specification of PNG, annex D.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _: u32| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_six_digits_are_a_colour() {
        assert!(square("teal").is_some() && square("#008080") == square("teal"));
        for text in ["", "blurple", "#12345", "#1234567", "123456", "#+12345", "#zzzzzz"] {
            assert!(square(text).is_none(), "{text}");
        }
    }

    #[test]
    fn checksums_are_those_of_the_specification() {
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc(b"IEND"), 0xae42_6082);
    }
}
