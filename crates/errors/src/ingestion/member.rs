//! Reads and changes the fields of parsed objects.

use std::borrow::Cow;

use shared::json::Json;
pub(super) use shared::json::members::{Members, get, get_mut, items};

use super::json_text;

/// Removes the field `name` and returns its value.
pub(super) fn take<'a>(members: &mut Members<'a>, name: &str) -> Option<Json<'a>> {
    let index = members.iter().position(|(member, _)| member == name)?;
    Some(members.remove(index).1)
}

/// Sets the field `name` in its place, or appends it.
pub(super) fn set<'a>(members: &mut Members<'a>, name: &'static str, value: Json<'a>) {
    match get_mut(members, name) {
        Some(present) => *present = value,
        None => members.push((name.into(), value)),
    }
}

/// Returns the field at a path of names.
pub(super) fn at_path<'j, 'a>(json: &'j Json<'a>, path: &[&str]) -> Option<&'j Json<'a>> {
    path.iter().try_fold(json, |json, name| json.member(name))
}

/// Returns a string, or a number or boolean as written.
pub(super) fn scalar_text<'j>(json: &'j Json<'_>) -> Option<&'j str> {
    match json {
        Json::String(text) => Some(text),
        Json::Number(written) => Some(written),
        Json::Bool(true) => Some("true"),
        Json::Bool(false) => Some("false"),
        _ => None,
    }
}

/// Returns the text of any value except `null`. Lists and objects become JSON, as on Sentry's
/// servers if a string is expected.
pub(super) fn any_text(json: Json<'_>) -> Option<Cow<'_, str>> {
    match json {
        Json::Null => None,
        Json::String(text) => Some(text),
        Json::Number(written) => Some(written.into()),
        Json::Bool(value) => Some(if value { "true".into() } else { "false".into() }),
        json => Some(json_text::to_string(&json).into()),
    }
}

/// Cuts a text to `most` characters.
pub(super) fn cut(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text;
    }
    let Some((end, _)) = text.char_indices().nth(most) else { return text };
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or_default()),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_characters() {
        assert_eq!(cut("aé😀b".into(), 3), "aé😀");
        assert_eq!(cut(Cow::Owned("aé😀b".to_owned()), 2), "aé");
        assert_eq!(cut("aé".into(), 2), "aé");
    }

    #[test]
    fn sets_fields_in_place() {
        let mut members = vec![("a".into(), Json::Null), ("b".into(), Json::Null)];
        set(&mut members, "a", Json::Bool(true));
        set(&mut members, "c", Json::Bool(false));
        let text = json_text::to_string(&Json::Object(members.clone()));
        assert_eq!(text, r#"{"a":true,"b":null,"c":false}"#);
        assert_eq!(take(&mut members, "a"), Some(Json::Bool(true)));
        assert_eq!(take(&mut members, "a"), None);
    }
}
