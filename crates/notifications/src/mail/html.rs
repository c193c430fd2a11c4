//! HTML of emails, without external resources. Elements have inline styles, because many email
//! clients drop style sheets. The style sheet contains only the colors of the dark mode.

use std::fmt::Write;

use shared::text::escape_html;

use super::notification_email::{Item, Parts};

const DARK: &str = "\
:root{color-scheme:light dark;supported-color-schemes:light dark}\
@media (prefers-color-scheme:dark){\
.page{background:#101418!important}\
.card{background:#1a2027!important;border-color:#2c353f!important}\
.ink{color:#e6eaee!important}\
.soft{color:#9aa7b4!important}\
.line{border-color:#2c353f!important}\
.link{color:#8fb4ff!important}\
.button{background:#8fb4ff!important;color:#0b1220!important}}";

const FONT: &str =
    "font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif";
const BARS: &str = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace";

pub(super) fn html_of(parts: &Parts<'_>) -> String {
    let headline = escape_html(&parts.headline);
    let mut body = format!(
        "<h1 class=\"ink\" style=\"margin:0 0 16px;font-size:20px;line-height:1.3;color:#16202a\">\
         {headline}</h1>\n"
    );
    // Writing to text cannot fail.
    for item in &parts.items {
        let _ = writeln!(body, "{}", item_of(item));
    }
    if let Some(more) = &parts.more {
        let more = escape_html(more);
        let _ = writeln!(
            body,
            "<p class=\"soft\" style=\"margin:12px 0 0;font-size:14px;line-height:1.5;color:#566573\">{more}</p>"
        );
    }
    if let Some((bars, caption)) = &parts.plot {
        let (bars, caption) = (escape_html(bars), escape_html(caption));
        let _ = writeln!(
            body,
            "<div class=\"line\" style=\"margin:20px 0 0;padding:16px 0 0;border-top:1px solid #dde3e8\">\
             <div class=\"link\" aria-hidden=\"true\" style=\"{BARS};font-size:18px;line-height:1;\
             letter-spacing:1px;white-space:nowrap;color:#1f4ed8\">{bars}</div>\
             <div class=\"soft\" style=\"margin:8px 0 0;font-size:13px;line-height:1.4;color:#566573\">{caption}</div>\
             </div>"
        );
    }
    if let Some((label, url)) = &parts.button {
        let (label, url) = (escape_html(label), escape_html(url));
        let _ = writeln!(
            body,
            "<p style=\"margin:16px 0 0\"><a class=\"button\" href=\"{url}\" style=\"display:inline-block;\
             padding:12px 20px;border-radius:6px;background:#1f4ed8;color:#ffffff;text-decoration:none;\
             font-weight:600\">{label}</a></p>"
        );
    }
    let mut footer = escape_html(&parts.footer);
    if let Some(url) = parts.unsubscribe_url {
        let url = escape_html(url);
        let _ = write!(
            footer,
            "<br><a class=\"link\" href=\"{url}\" style=\"color:#1f4ed8\">Unsubscribe</a>"
        );
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"supported-color-schemes\" content=\"light dark\">\n\
         <meta name=\"format-detection\" content=\"telephone=no,date=no,address=no,email=no,url=no\">\n\
         <title>{headline}</title>\n<style>{DARK}</style>\n</head>\n\
         <body class=\"page\" style=\"margin:0;padding:0;background:#f3f5f7;{FONT}\">\n\
         <div class=\"page\" style=\"padding:24px 12px;background:#f3f5f7\">\n\
         <div class=\"card\" style=\"max-width:600px;margin:0 auto;padding:24px;background:#ffffff;\
         border:1px solid #dde3e8;border-radius:8px\">\n{body}</div>\n\
         <p class=\"soft\" style=\"max-width:600px;margin:16px auto 0;padding:0 12px;font-size:12px;\
         line-height:1.5;color:#566573\">{footer}</p>\n</div>\n</body>\n</html>\n"
    )
}

fn item_of(item: &Item) -> String {
    let title = escape_html(&item.title);
    let detail = match item.detail.as_str() {
        "" => String::new(),
        detail => format!(
            "<div class=\"soft\" style=\"margin:2px 0 0;font-size:13px;line-height:1.4;color:#566573;\
             overflow-wrap:anywhere\">{}</div>",
            escape_html(detail)
        ),
    };
    let title = match &item.url {
        Some(url) => format!(
            "<a class=\"link\" href=\"{}\" style=\"color:#1f4ed8;text-decoration:none\">{title}</a>",
            escape_html(url)
        ),
        None => title,
    };
    format!(
        "<div class=\"line\" style=\"padding:10px 0;border-top:1px solid #dde3e8\">\
         <div class=\"ink\" style=\"font-size:15px;line-height:1.4;font-weight:600;color:#16202a;\
         overflow-wrap:anywhere\">{title}</div>{detail}</div>"
    )
}
