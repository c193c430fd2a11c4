//! The wire format of requests to DynamoDB and other AWS services, for fakes and proxies.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The operation, such as `TransactWriteItems`. Empty if the path names it.
    pub target: String,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Reads the next request of a connection, if there is one.
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

/// Writes a response. Returns `None` if the client has disconnected.
pub async fn write_response(connection: &mut TcpStream, status: u16, body: &[u8]) -> Option<()> {
    let mut response = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/x-amz-json-1.0\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    response.extend(body);
    connection.write_all(&response).await.ok()
}
