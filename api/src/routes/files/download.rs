//! The answer with the bytes of a file: as a whole or in part, part by part from the store.

use std::{ops::Range as Span, sync::Arc};

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use axum_extra::headers::{AcceptRanges, ContentLength, ContentRange, ETag, HeaderMapExt, IfNoneMatch, IfRange};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use holdfast_shared::{
    file::{PART_BYTES, StoredFile, is_text},
    file_store, media_type,
};
use holdfast_text::TextEncoding;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    app::{App, time_at_least_rate},
    auth::Caller,
    hang_up::HangUp,
    problem::Problem,
};

/// A file is somebody's, and it is never a page of this origin: no script of it runs, also if a browser shows it.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'; sandbox"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "private, max-age=0, must-revalidate"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub async fn respond(app: &Arc<App>, caller: &Caller, file: StoredFile, request: &Parts) -> Result<Response, Problem> {
    let Some(sha256) = &file.sha256 else {
        let mut response = Problem::upload_unfinished(file.id).into_response();
        response.headers_mut().insert("upload-offset", HeaderValue::from(file.received));
        return Ok(response);
    };
    let headers = &request.headers;
    let tag: ETag = format!("\"{sha256}\"").parse().expect("hexadecimal digits are a tag");
    if headers.typed_get::<IfNoneMatch>().is_some_and(|known| !known.precondition_passes(&tag)) {
        return Ok(with_headers(StatusCode::NOT_MODIFIED.into_response(), tag));
    }
    let is_current = headers.typed_get::<IfRange>().is_none_or(|range| !range.is_modified(Some(&tag), None));
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let span =
        range.filter(|_| is_current && request.method == Method::GET).and_then(|range| span_of(range, file.bytes));
    if span == Some(Err(Unsatisfiable)) {
        let mut response = Problem::range_not_satisfiable(file.bytes).into_response();
        response.headers_mut().typed_insert(ContentRange::unsatisfied_bytes(file.bytes));
        return Ok(response);
    }
    let span = span.and_then(Result::ok);
    let (status, part) = match span.clone() {
        Some(span) => (StatusCode::PARTIAL_CONTENT, span),
        None => (StatusCode::OK, 0..file.bytes),
    };
    let bytes = part.end - part.start;
    let (body, encoding) = if request.method == Method::HEAD {
        (Body::empty(), None)
    } else {
        body(app, caller, &file, part, request).await?
    };
    let mut response = with_headers((status, body).into_response(), tag);
    let response_headers = response.headers_mut();
    response_headers.typed_insert(AcceptRanges::bytes());
    response_headers.typed_insert(ContentLength(bytes));
    if let Some(span) = span {
        response_headers.typed_insert(ContentRange::bytes(span, file.bytes).expect("the span is within the file"));
    }
    response_headers.insert(header::CONTENT_TYPE, content_type(&file.media_type, encoding));
    response_headers.insert(header::CONTENT_DISPOSITION, disposition(&file));
    Ok(response)
}

/// Returns the part of a file as a stream, and the encoding of a text whose beginning is in the part. The first bytes are read
/// before the answer begins, so that a store that is away becomes a problem.
async fn body(
    app: &Arc<App>,
    caller: &Caller,
    file: &StoredFile,
    part: Span<u64>,
    request: &Parts,
) -> Result<(Body, Option<TextEncoding>), Problem> {
    let unread = app.unread_answers();
    let memory = unread.hold(caller, PART_BYTES as usize)?;
    let longest = app.config().answer_timeout + time_at_least_rate(part.end - part.start);
    let deadline = request.extensions.get::<HangUp>().map(|hang_up| hang_up.after(longest));
    let (content_id, total, app) = (file.content_id, file.bytes, Arc::clone(app));
    let piece = move |left: Span<u64>| {
        let app = Arc::clone(&app);
        async move {
            let number = left.start / PART_BYTES;
            let stored = app.file_store().get(content_id, number, total).await?;
            Ok::<_, file_store::Error>(piece_of(&stored, number * PART_BYTES, &left))
        }
    };
    let first = piece(part.clone()).await?;
    let has_beginning = part.start == 0 && is_text(&file.media_type);
    let encoding = has_beginning.then(|| TextEncoding::of(&first, first.len() as u64 == file.bytes)).flatten();
    let rest = part.start + first.len() as u64..part.end;
    let rest = stream::try_unfold((rest, memory, deadline), move |(mut left, memory, deadline)| {
        let piece = piece.clone();
        async move {
            if left.is_empty() {
                return Ok(None);
            }
            let bytes = piece(left.clone()).await?;
            left.start += bytes.len() as u64;
            Ok(Some((bytes, (left, memory, deadline))))
        }
    });
    Ok((Body::from_stream(stream::iter([Ok::<_, file_store::Error>(first)]).chain(rest)), encoding))
}

fn with_headers(mut response: Response, tag: ETag) -> Response {
    let headers = response.headers_mut();
    headers.typed_insert(tag);
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the bytes of a stored part that lie in the span. The part begins at `start`, and has the first byte of the span.
fn piece_of(stored: &Bytes, start: u64, span: &Span<u64>) -> Bytes {
    let from = (span.start - start) as usize;
    let to = (span.end - start).min(stored.len() as u64) as usize;
    stored.slice(from..to)
}

/// The range lies beyond the file.
#[derive(Debug, PartialEq, Eq)]
struct Unsatisfiable;

/// Returns the span of a range; `None` for several ranges, and for one that is malformed, which get the whole file.
fn span_of(range: &str, bytes: u64) -> Option<Result<Span<u64>, Unsatisfiable>> {
    let (start, last) = range.trim().strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let span = match (start, last) {
        ("", suffix) => bytes.saturating_sub(number(suffix)?)..bytes,
        (start, "") => number(start)?..bytes,
        (start, last) => {
            let (start, last) = (number(start)?, number(last)?);
            if last < start {
                return None;
            }
            start..last.saturating_add(1).min(bytes)
        }
    };
    Some(if span.is_empty() { Err(Unsatisfiable) } else { Ok(span) })
}

/// Returns the media type, of a text with its encoding.
fn content_type(media_type: &str, encoding: Option<TextEncoding>) -> HeaderValue {
    let value = match encoding {
        Some(encoding) => format!("{media_type}; charset={}", encoding.name().to_ascii_lowercase()),
        None => media_type.to_owned(),
    };
    HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static(media_type::BYTES))
}

/// Returns the header that lets a browser show pictures and PDFs, and save all other files under their names.
fn disposition(file: &StoredFile) -> HeaderValue {
    let kind = if media_type::is_shown(&file.media_type) { "inline" } else { "attachment" };
    let name = utf8_percent_encode(&file.name, NON_ALPHANUMERIC);
    // Clients that know only the older parameter save the file under this name.
    let is_kept = |c: char| (c == ' ' || c.is_ascii_graphic()) && !"\"\\%".contains(c);
    let older: String = file.name.chars().map(|c| if is_kept(c) { c } else { '_' }).collect();
    HeaderValue::from_str(&format!("{kind}; filename=\"{older}\"; filename*=UTF-8''{name}"))
        .expect("percent-encoded text is a header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_span_of_the_file_or_none() {
        for (range, expected) in [
            ("bytes=0-9", Some(Ok(0..10))),
            ("bytes=60-", Some(Ok(60..68))),
            ("bytes=-8", Some(Ok(60..68))),
            ("bytes=-1000", Some(Ok(0..68))),
            ("bytes=0-18446744073709551615", Some(Ok(0..68))),
            ("bytes=67-67", Some(Ok(67..68))),
            ("bytes=68-", Some(Err(Unsatisfiable))),
            ("bytes=-0", Some(Err(Unsatisfiable))),
            ("bytes=5-2", None),
            ("bytes=+1-2", None),
            ("bytes=abc", None),
            ("bytes=0-1,5-6", None),
            ("items=0-1", None),
            ("bytes=-", None),
        ] {
            assert_eq!(span_of(range, 68), expected, "{range}");
        }
    }
}
