//! The fields of parsed objects.

use std::borrow::Cow;

use super::Json;

/// The fields of an object.
pub type Members<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

/// Returns the field `name`.
pub fn get<'m, 'a>(members: &'m Members<'a>, name: &str) -> Option<&'m Json<'a>> {
    members.iter().find_map(|(member, value)| (member == name).then_some(value))
}

/// Returns the field `name`, to be changed.
pub fn get_mut<'m, 'a>(members: &'m mut Members<'a>, name: &str) -> Option<&'m mut Json<'a>> {
    members.iter_mut().find_map(|(member, value)| (member == name).then_some(value))
}

/// Returns the items of an array, or none for any other value.
pub fn items<'j, 'a>(json: Option<&'j Json<'a>>) -> &'j [Json<'a>] {
    match json {
        Some(Json::Array(items)) => items,
        _ => &[],
    }
}
