//! Typed values of variants.

use serde_json::value::RawValue;

use crate::{FlagType, Variant, VariantKey};

use super::compiled::DamagedFlag;

/// A variant with its value as JSON.
#[derive(Debug)]
pub struct TypedVariant {
    key: VariantKey,
    value: Box<RawValue>,
}

impl TypedVariant {
    /// Returns the variant's key.
    pub fn key(&self) -> &VariantKey {
        &self.key
    }

    /// Returns the variant's value as JSON. A flag's numbers are either all integers or all have a
    /// fraction or exponent. Providers that distinguish the two therefore always get the same type.
    pub fn value(&self) -> &RawValue {
        &self.value
    }

    /// Parses the values of a flag's variants.
    pub(crate) fn all_of(
        flag_type: FlagType,
        variants: &[Variant],
    ) -> Result<Box<[Self]>, DamagedFlag> {
        let integers = variants.iter().all(|variant| !variant.value.contains(['.', 'e', 'E']));
        let typed = |variant: &Variant| {
            let value = match flag_type {
                FlagType::Boolean => variant.value.parse::<bool>().ok().and_then(to_json),
                FlagType::String => to_json(&variant.value),
                FlagType::Number if integers => variant.value.parse::<i64>().ok().and_then(to_json),
                FlagType::Number => {
                    let number =
                        variant.value.parse().ok().filter(|number: &f64| number.is_finite());
                    number.and_then(to_json)
                }
                FlagType::Json => RawValue::from_string(variant.value.clone()).ok(),
            };
            let key = variant.key.clone();
            let value = value.ok_or_else(|| {
                DamagedFlag::new(format_args!("its variant {key} has a value of another type"))
            })?;
            Ok(Self { key, value })
        };
        variants.iter().map(typed).collect()
    }
}

fn to_json(value: impl serde::Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(&value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(flag_type: FlagType, values: &[&str]) -> Result<Vec<String>, DamagedFlag> {
        let variants: Vec<Variant> = (0_u8..)
            .zip(values)
            .map(|(index, value)| Variant {
                key: VariantKey::parse(&format!("v{index}")).unwrap(),
                name: String::new(),
                value: (*value).to_owned(),
            })
            .collect();
        let typed = TypedVariant::all_of(flag_type, &variants)?;
        Ok(typed.iter().map(|variant| variant.value().get().to_owned()).collect())
    }

    #[test]
    fn numbers_of_a_flag_share_one_type() {
        let numbers = |values: &[&str]| typed(FlagType::Number, values).unwrap();
        assert_eq!(numbers(&["1", "-0", "9007199254740991"]), ["1", "0", "9007199254740991"]);
        assert_eq!(numbers(&["1", "0.1", "-0"]), ["1.0", "0.1", "-0.0"]);
        assert_eq!(numbers(&["10", "1e3"]), ["10.0", "1000.0"]);
        // Large numbers keep the exponent, which also marks them as non-integers.
        assert_eq!(numbers(&["1e300"]), ["1e+300"]);
    }

    #[test]
    fn other_values_keep_their_stored_form() {
        assert_eq!(typed(FlagType::Boolean, &["true", "false"]).unwrap(), ["true", "false"]);
        assert_eq!(typed(FlagType::String, &["", "a\"é\n"]).unwrap(), [r#""""#, r#""a\"é\n""#]);
        let json = r#"{"b": 1.50, "a": [1e400, "\u00e9"]}"#;
        assert_eq!(typed(FlagType::Json, &[json, "[]"]).unwrap(), [json, "[]"]);
    }

    #[test]
    fn values_of_another_type_are_rejected() {
        for (flag_type, value) in [
            (FlagType::Boolean, "TRUE"),
            (FlagType::Boolean, ""),
            (FlagType::Number, ""),
            (FlagType::Number, "1e999"),
            (FlagType::Number, "99999999999999999999"),
            (FlagType::Json, "{"),
            (FlagType::Json, ""),
        ] {
            assert!(typed(flag_type, &[value]).is_err(), "{value:?}");
        }
    }
}
