//! The two forms of an upload, read as a stream of bytes with a name and a range.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    extract::Request,
    http::{HeaderMap, header},
};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use holdfast_shared::{
    file::{PART_BYTES, StoredFile},
    file_name::plain_name,
    storage::{NewFile, RunOptions},
};
use multer::{Constraints, Multipart, SizeLimit};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::name::{name, name_in_form};
use crate::{
    app::{App, UploadRange},
    auth::Caller,
    bodies::UploadInFlight,
    extract::{expect_plain, idempotency_key},
    lingering_body::LingeringBody,
    problem::Problem,
};

/// Bytes of a form around its file.
const FORM_BYTES: u64 = 16 * 1024;

/// Reads the request in either form, and stores its file.
pub async fn create(
    app: &Arc<App>,
    caller: &Caller,
    in_flight: UploadInFlight,
    request: Request,
) -> Result<StoredFile, Problem> {
    let headers = request.headers().clone();
    expect_plain(&headers)?;
    if is_form(&headers) {
        let (name, file) = field(app, request).await?;
        let new = new_file(&headers, name, None)?;
        let file = app.bodies().counted(in_flight, file);
        return app.upload(caller, new, UploadRange::within(length(&headers)), file).await;
    }
    let body = app.bodies().counted(in_flight, bytes_of(app, request));
    let range = range(&headers)?.unwrap_or(UploadRange::whole(length(&headers)));
    if range.start > 0 {
        return Err(Problem::invalid_upload("A new file begins with its first byte"));
    }
    let new = new_file(&headers, name(&headers), range.total)?;
    app.upload(caller, new, range, body).await
}

/// Reads the request, and continues the upload of a file.
pub async fn resume(
    app: &Arc<App>,
    caller: &Caller,
    id: Uuid,
    in_flight: UploadInFlight,
    request: Request,
) -> Result<StoredFile, Problem> {
    expect_plain(request.headers())?;
    let range = range(request.headers());
    let body = app.bodies().counted(in_flight, bytes_of(app, request));
    let range = range?.ok_or_else(|| Problem::no_upload_range(id))?;
    app.resume_upload(caller, id, range, body).await
}

fn new_file(headers: &HeaderMap, name: Option<String>, total: Option<u64>) -> Result<NewFile, Problem> {
    let name = plain_name(name.as_deref().unwrap_or_default());
    let total_text = total.map(|total| total.to_string()).unwrap_or_default();
    let key = idempotency_key(headers, &["file", &name, &total_text], &RunOptions::default())?;
    Ok(NewFile { name, bytes: total.unwrap_or_default(), key })
}

fn is_form(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media_type.trim_start().to_ascii_lowercase().starts_with("multipart/form-data")
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns the part of the file that the body is; `None` without the header.
fn range(headers: &HeaderMap) -> Result<Option<UploadRange>, Problem> {
    let Some(value) = headers.get(header::CONTENT_RANGE) else { return Ok(None) };
    let parsed = value.to_str().ok().and_then(|value| {
        let (bounds, total) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
        let (start, last) = bounds.split_once('-')?;
        let (start, last, total) = (start.parse().ok()?, last.parse::<u64>().ok()?, total.parse().ok()?);
        let end = last.checked_add(1)?;
        (start < end && end <= total).then_some(UploadRange {
            start,
            end: Some(end),
            total: Some(total),
            at_most: None,
            is_part: true,
        })
    });
    let invalid = || Problem::invalid_upload("content-range is not like \"bytes 0-1048575/5242880\"");
    parsed.map(Some).ok_or_else(invalid)
}

fn body_of(app: &App, request: Request) -> LingeringBody {
    LingeringBody::new(request.into_body(), app.max_file_bytes(), app.config().body_timeout)
}

fn bytes_of(app: &App, request: Request) -> impl Stream<Item = Result<Bytes, Problem>> + Send + 'static {
    body_of(app, request).map(|bytes| bytes.map_err(|_| Problem::upload_broken()))
}

/// Returns the field `file` of a form, as its name and its bytes. The fields before it are small.
async fn field(
    app: &App,
    request: Request,
) -> Result<(Option<String>, impl Stream<Item = Result<Bytes, Problem>> + Send + 'static), Problem> {
    let boundary = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let boundary = multer::parse_boundary(boundary.unwrap_or_default()).map_err(Problem::invalid_upload)?;
    let most = app.max_file_bytes();
    let limits = SizeLimit::new().whole_stream(most + FORM_BYTES).per_field(FORM_BYTES).for_field("file", most + 1);
    let has_begun = Arc::new(AtomicBool::new(false));
    let body = before_file(body_of(app, request), Arc::clone(&has_begun));
    let mut form = Multipart::with_constraints(body, boundary, Constraints::new().size_limit(limits));
    let deadline = Instant::now() + app.config().body_timeout;
    loop {
        let next = timeout_at(deadline, form.next_field()).await.map_err(|_| Problem::body_timeout())?;
        let Some(field) = next.map_err(|error| broken(error, most))? else {
            return Err(Problem::invalid_upload("The form has no field file"));
        };
        if field.name() == Some("file") {
            has_begun.store(true, Ordering::Relaxed);
            let name = name_in_form(field.headers());
            return Ok((name, field.map(move |bytes| bytes.map_err(|error| broken(error, most)))));
        }
    }
}

/// Limits what a form has before its file, because the form's reader keeps it in memory.
fn before_file(
    body: LingeringBody,
    has_begun: Arc<AtomicBool>,
) -> impl Stream<Item = Result<Bytes, Box<dyn Error + Send + Sync>>> + Send + 'static {
    let mut before = 0;
    body.map(move |bytes| {
        let bytes = bytes?;
        if has_begun.load(Ordering::Relaxed) {
            return Ok(bytes);
        }
        // The read that has the beginning of the file has some of it, too.
        before += bytes.len() as u64;
        if before > FORM_BYTES + PART_BYTES { Err("the form has too much before its file".into()) } else { Ok(bytes) }
    })
}

fn broken(error: multer::Error, most: u64) -> Problem {
    match error {
        multer::Error::FieldSizeExceeded { .. } | multer::Error::StreamSizeExceeded { .. } => {
            Problem::file_too_large(most)
        }
        multer::Error::StreamReadFailed(_) | multer::Error::IncompleteStream => Problem::upload_broken(),
        error => Problem::invalid_upload(error),
    }
}
