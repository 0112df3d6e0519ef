//! Fetches from a server of the test, which is no public address, so each needs an exception.

use clap::Parser as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(1);

#[derive(clap::Parser)]
struct EgressArgs {
    #[command(flatten)]
    config: EgressConfig,
}

fn egress(flags: &[String]) -> Egress {
    let flags = flags.iter().map(String::as_str);
    let args = EgressArgs::try_parse_from(["test"].into_iter().chain(flags)).unwrap_or_else(|error| panic!("{error}"));
    Egress::new(&args.config).unwrap()
}

/// Serves the same answer to each request.
async fn serve(answer: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    port
}

fn found(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn moved(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

#[tokio::test]
async fn only_public_addresses_are_reached_without_an_exception() {
    let port = serve(found("x")).await;
    let strict = egress(&[]);
    let turn = strict.turn("ann", LONG).await.unwrap();
    let check = async |address: String, expected: EgressError| {
        assert_eq!(strict.fetch(&turn, &address).await, Err(expected), "{address}");
    };
    check(format!("http://127.0.0.1:{port}/"), EgressError::NotHttps).await;
    check(format!("https://127.0.0.1:{port}/"), EgressError::NotPublic).await;
    check(format!("https://2130706433:{port}/"), EgressError::NotPublic).await;
    check(format!("https://[::ffff:127.0.0.1]:{port}/"), EgressError::NotPublic).await;
    // The name is judged by its addresses.
    check(format!("https://localhost:{port}/"), EgressError::NotPublic).await;
    check("https://me:secret@example.com/".to_owned(), EgressError::Credentials).await;
    check("file:///etc/passwd".to_owned(), EgressError::Invalid).await;
    check("no address".to_owned(), EgressError::Invalid).await;
}

#[tokio::test]
async fn an_exception_is_for_its_port_alone_and_not_for_redirects() {
    let port = serve(found("contents")).await;
    let other = serve(found("secret")).await;
    let away = serve(moved(&format!("http://127.0.0.1:{other}/"))).await;
    let metadata = serve(moved("https://169.254.169.254/latest/meta-data/")).await;
    let home = serve(moved(&format!("http://127.0.0.1:{port}/a.png"))).await;
    let allow = format!("--egress-allow=127.0.0.1:{port},127.0.0.1:{away},127.0.0.1:{metadata},127.0.0.1:{home}");
    let egress = egress(&[allow]);
    let turn = egress.turn("ann", LONG).await.unwrap();
    let fetch = async |port: u16| egress.fetch(&turn, &format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(fetch(port).await.as_deref(), Ok(&b"contents"[..]));
    assert_eq!(fetch(home).await.as_deref(), Ok(&b"contents"[..]));
    assert_eq!(fetch(other).await, Err(EgressError::NotHttps));
    assert_eq!(fetch(away).await, Err(EgressError::NotHttps));
    assert_eq!(fetch(metadata).await, Err(EgressError::NotPublic));
}

#[tokio::test]
async fn answers_are_bounded_and_redirects_end() {
    let exact = serve(found("12345")).await;
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n6\r\n123456\r\n0\r\n\r\n";
    let unannounced = serve(chunked.to_owned()).await;
    let announced = serve(found("123456")).await;
    let missing = serve("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()).await;
    let egress = egress(&["--egress-allow=127.0.0.1".to_owned(), "--egress-max-bytes=5".to_owned()]);
    let turn = egress.turn("ann", LONG).await.unwrap();
    let fetch = async |port: u16| egress.fetch(&turn, &format!("http://127.0.0.1:{port}/")).await;
    assert!(fetch(exact).await.is_ok());
    assert_eq!(fetch(unannounced).await, Err(EgressError::TooLarge(5)));
    assert_eq!(fetch(announced).await, Err(EgressError::TooLarge(5)));
    assert_eq!(fetch(missing).await, Err(EgressError::Status(404)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let circle = moved(&format!("http://127.0.0.1:{port}/"));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(circle.as_bytes()).await;
        }
    });
    assert_eq!(fetch(port).await, Err(EgressError::Redirects));
}

#[tokio::test]
async fn a_body_that_drips_gives_its_place_back() {
    let silent = serve("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n".to_owned()).await;
    let egress = egress(&["--egress-allow=127.0.0.1".to_owned()]);
    let turn = egress.turn("ann", LONG).await.unwrap();
    // That server hangs up after its answer, and this one does not.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let holding = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 1024]).await;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
        drop(socket);
    });
    let cut = egress.fetch(&turn, &format!("http://127.0.0.1:{silent}/")).await;
    assert_eq!(cut, Err(EgressError::Unreachable), "its server hangs up");
    let slow = egress.fetch(&turn, &format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(slow, Err(EgressError::TooSlow));
    assert_eq!(egress.bodies.available_permits(), BODIES_AT_ONCE);
    assert_eq!([0, LEAST_RATE, 10 * LEAST_RATE].map(|arrived| latest(arrived).as_secs()), [2, 3, 12]);
    holding.abort();
}

#[tokio::test]
async fn a_caller_has_one_turn_and_all_callers_have_a_few() {
    let egress = egress(&[]);
    let held = egress.turn("ann", LONG).await.unwrap();
    assert_eq!(egress.turn("ann", SHORT).await.err(), Some(EgressError::Busy));
    let mut others = Vec::new();
    for other in 1..RUNS_AT_ONCE {
        others.push(egress.turn(&format!("bob-{other}"), LONG).await.expect("ann's fetches hold up nobody else"));
    }
    assert_eq!(egress.turn("carl", SHORT).await.err(), Some(EgressError::Busy));
    drop(held);
    assert!(egress.turn("carl", LONG).await.is_ok());
}
