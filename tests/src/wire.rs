//! Requests to DynamoDB, and to other services of AWS, as they are on the wire, for stand-ins and for what stands
//! in between.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is asked for, such as `TransactWriteItems`; empty where the path says it.
    pub target: String,
    /// The headers, by their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The next request of a connection, if there is one.
pub async fn read_request(connection: &mut TcpStream) -> Option<Request> {
    let mut received = Vec::new();
    loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            let headers: Vec<(String, String)> = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
                .collect();
            let header = |wanted: &str| {
                let found = headers.iter().find(|(name, _)| name == wanted);
                found.map(|(_, value)| value.as_str())
            };
            let length: usize = header("content-length")?.parse().ok()?;
            let start = end + 4;
            if received.len() >= start + length {
                let target =
                    header("x-amz-target").unwrap_or_default().rsplit('.').next()?.to_owned();
                return Some(Request {
                    target,
                    headers,
                    body: received[start..start + length].into(),
                });
            }
        }
        if connection.read_buf(&mut received).await.ok()? == 0 {
            return None;
        }
    }
}

/// Answers a request; `None` if nobody waits any more.
pub async fn write_answer(connection: &mut TcpStream, status: u16, body: &[u8]) -> Option<()> {
    let mut answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/x-amz-json-1.0\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend(body);
    connection.write_all(&answer).await.ok()
}
