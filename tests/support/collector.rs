//! A collector of OpenTelemetry: a server that accepts OTLP over HTTP and keeps all spans.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{KeyValue, any_value},
    trace::v1::{Span, status::StatusCode},
};
use prost::Message as _;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::until;

/// A collector that runs as long as the test.
pub struct TestCollector {
    pub url: String,
    state: Arc<CollectorState>,
}

#[derive(Default)]
struct CollectorState {
    spans: Mutex<Vec<ExportedSpan>>,
    /// The bodies of all requests, one after the other.
    bytes: Mutex<Vec<u8>>,
    requests: AtomicUsize,
    refuses: AtomicBool,
    hangs: watch::Sender<bool>,
}

/// An exported span, and the attributes of the process that exported it.
#[derive(Debug, Clone)]
pub struct ExportedSpan {
    pub span: Span,
    pub resource: BTreeMap<String, String>,
}

impl TestCollector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(CollectorState::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&shared)));
            }
        });
        Self { url, state }
    }

    /// Sets whether the collector refuses all requests for good.
    pub fn refuse(&self, refuses: bool) {
        self.state.refuses.store(refuses, Ordering::SeqCst);
    }

    /// Sets whether the collector leaves all requests without a response.
    pub fn hang(&self, hangs: bool) {
        self.state.hangs.send_replace(hangs);
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Returns whether a request contained this text.
    pub fn has_received(&self, text: &str) -> bool {
        self.state.bytes.lock().unwrap().windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// Returns the spans of a trace so far.
    pub fn trace(&self, trace_id: &str) -> Vec<ExportedSpan> {
        let spans = self.state.spans.lock().unwrap();
        spans.iter().filter(|traced| hex(&traced.span.trace_id) == trace_id).cloned().collect()
    }

    /// Waits until a trace has `count` spans of this name, and returns all its spans.
    pub async fn trace_with(&self, trace_id: &str, name: &str, count: usize) -> Vec<ExportedSpan> {
        let what = format!("the collector has {count} spans {name} of {trace_id}");
        let find = async || {
            let trace = self.trace(trace_id);
            (trace.iter().filter(|traced| traced.span.name == name).count() >= count).then_some(trace)
        };
        until(&what, find).await
    }
}

impl ExportedSpan {
    pub fn id(&self) -> String {
        hex(&self.span.span_id)
    }

    pub fn parent(&self) -> String {
        hex(&self.span.parent_span_id)
    }

    /// Returns an attribute as text.
    pub fn get(&self, key: &str) -> Option<String> {
        self.span.attributes.iter().find(|attribute| attribute.key == key).map(text)
    }

    /// Returns the code of the span's failure, if it failed.
    pub fn failure(&self) -> Option<&str> {
        let status = self.span.status.as_ref()?;
        (status.code() == StatusCode::Error).then_some(status.message.as_str())
    }

    /// Returns the tree of a trace's span names, each with the role of its process.
    pub fn tree(trace: &[Self]) -> String {
        let mut tree = String::new();
        let ids: Vec<String> = trace.iter().map(Self::id).collect();
        let roots = trace.iter().filter(|traced| !ids.contains(&traced.parent()));
        let mut roots: Vec<&Self> = roots.collect();
        roots.sort_by_key(|traced| traced.span.start_time_unix_nano);
        roots.into_iter().for_each(|root| root.write(trace, 0, &mut tree));
        tree
    }

    fn write(&self, trace: &[Self], depth: usize, tree: &mut String) {
        let role = &self.resource["holdfast.role"];
        writeln!(tree, "{}{} ({role})", "  ".repeat(depth), self.span.name).unwrap();
        let mut below: Vec<&Self> = trace.iter().filter(|traced| traced.parent() == self.id()).collect();
        below.sort_by_key(|traced| traced.span.start_time_unix_nano);
        below.into_iter().for_each(|traced| traced.write(trace, depth + 1, tree));
    }
}

async fn serve(socket: TcpStream, state: Arc<CollectorState>) {
    let mut socket = BufReader::new(socket);
    while let Some((head, body)) = request(&mut socket).await {
        state.requests.fetch_add(1, Ordering::SeqCst);
        let _ = state.hangs.subscribe().wait_for(|hangs| !hangs).await;
        let mut status = "400 Bad Request";
        if !state.refuses.load(Ordering::SeqCst) {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
            assert!(head.to_ascii_lowercase().contains("content-type: application/x-protobuf"), "{head}");
            keep(&state, &body);
            status = "200 OK";
        }
        let body = ExportTraceServiceResponse::default().encode_to_vec();
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let _ = socket.get_mut().write_all(&[answer.as_bytes(), &body].concat()).await;
    }
}

async fn request(socket: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if socket.read_line(&mut line).await.unwrap_or(0) == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

fn keep(state: &CollectorState, body: &[u8]) {
    let request = ExportTraceServiceRequest::decode(body).expect("it is OTLP");
    state.bytes.lock().unwrap().extend_from_slice(body);
    let mut spans = state.spans.lock().unwrap();
    for resource_spans in request.resource_spans {
        let attributes = resource_spans.resource.unwrap_or_default().attributes;
        let resource: BTreeMap<_, _> = attributes.iter().map(|it| (it.key.clone(), text(it))).collect();
        let scoped_spans = resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans.extend(scoped_spans.map(|span| ExportedSpan { span, resource: resource.clone() }));
    }
}

fn text(attribute: &KeyValue) -> String {
    match attribute.value.clone().and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(any_value::Value::DoubleValue(number)) => number.to_string(),
        Some(any_value::Value::BoolValue(flag)) => flag.to_string(),
        other => format!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
