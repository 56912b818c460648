//! The one form that RFC 8785 (JCS) gives to a JSON value: no spaces, fields sorted by UTF-16 units, numbers
//! as JavaScript writes them, no escape that is not needed. Whoever hashes JSON has to hash this: otherwise
//! the order of a map, a feature of another crate or the spelling of a number makes another hash.

use serde_json::{Number, Value};

use super::KeyError;

/// The canonical text.
pub(super) fn text(value: &Value) -> Result<String, KeyError> {
    let mut out = String::new();
    write(value, &mut out)?;
    Ok(out)
}

fn write(value: &Value, out: &mut String) -> Result<(), KeyError> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number_text(number)?),
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            // By UTF-16 units, as the RFC asks: an emoji comes before a letter of the block U+FB00.
            fields.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            out.push('{');
            for (at, (name, field)) in fields.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                string(name, out);
                out.push(':');
                write(field, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// JSON's numbers are doubles here. One that is not exactly a double is refused: rounded, it would be equal
/// to another.
fn number_text(number: &Number) -> Result<String, KeyError> {
    let exact = number.as_f64().filter(|double| double.is_finite());
    let exact = exact.filter(|double| match (number.as_u64(), number.as_i64()) {
        (Some(whole), _) => *double as u128 == u128::from(whole),
        (None, Some(whole)) => *double as i128 == i128::from(whole),
        (None, None) => true,
    });
    exact.map(double_text).ok_or_else(|| KeyError::NotExact(number.to_string()))
}

/// As JavaScript writes it: the fewest digits that lead back to the same double, and an exponent for very
/// large and very small ones.
fn double_text(double: f64) -> String {
    if double == 0.0 {
        return "0".to_owned();
    }
    // Rust gives as many digits, as d.ddde-7. Where two numbers of that length are equally near, JavaScript
    // takes the even one, which rounding to that length does.
    let shortest = format!("{:e}", double.abs());
    let digits = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let rounded = format!("{:.*e}", digits.saturating_sub(1), double.abs());
    let is_same = rounded.parse() == Ok(double.abs());
    let shortest = if is_same { rounded } else { shortest };
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let len = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The value is 0.DIGITS times ten to the power of `point`.
    let point = exponent + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let at = |place: i32| digits.split_at(usize::try_from(place).unwrap_or(0).min(digits.len()));
    let unsigned = if len <= point && point <= 21 {
        format!("{digits}{}", zeros(point - len))
    } else if 0 < point && point <= 21 {
        let (whole, rest) = at(point);
        format!("{whole}.{rest}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{first}{dot}{rest}e{sign}{}", exponent.abs())
    };
    if double < 0.0 { format!("-{unsigned}") } else { unsigned }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Appendix B of the RFC.
    #[test]
    fn numbers_are_written_as_the_rfc_lists_them() {
        let listed: [(u64, &str); 24] = [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ];
        for (bits, text) in listed {
            assert_eq!(double_text(f64::from_bits(bits)), text, "{bits:016x}");
        }
    }

    /// Section 3.2.2 of the RFC.
    #[test]
    fn the_rfcs_sample_has_the_rfcs_form() {
        // The first number is 333333333.33333329 of the RFC: serde_json would read it a bit beside its value.
        let third = f64::from_bits(0x41b3_de43_5555_5555);
        let sample = json!({
            "numbers": [third, 1e30, 4.50, 2e-3, 0.000_000_000_000_000_000_000_000_001],
            "string": "\u{20ac}$\u{f}\u{a}A'\u{42}\u{22}\u{5c}\\\"/",
            "literals": [null, true, false],
        });
        let canonical = concat!(
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );

        assert_eq!(text(&sample).unwrap(), canonical);
    }

    /// Section 3.2.3 of the RFC.
    #[test]
    fn fields_are_sorted_by_utf_16_units() {
        let fields = json!({
            "\u{20ac}": "Euro Sign",
            "\r": "Carriage Return",
            "\u{fb33}": "Hebrew Letter Dalet With Dagesh",
            "1": "One",
            "\u{1f600}": "Emoji: Grinning Face",
            "\u{80}": "Control",
            "\u{f6}": "Latin Small Letter O With Diaeresis",
        });
        let canonical = text(&fields).unwrap();
        let order = [
            "Carriage Return",
            "One",
            "Control",
            "Latin Small Letter O With Diaeresis",
            "Euro Sign",
            "Emoji: Grinning Face",
            "Hebrew Letter Dalet With Dagesh",
        ];
        let places = order.map(|word| canonical.find(word).unwrap());

        assert!(places.is_sorted(), "{canonical}");
    }

    #[test]
    fn a_number_that_would_be_rounded_is_refused() {
        assert_eq!(text(&json!(9_007_199_254_740_992_u64)).unwrap(), "9007199254740992");
        assert_eq!(text(&json!(u64::MAX - 2047)).unwrap(), "18446744073709550000");
        for rounded in [json!(9_007_199_254_740_993_u64), json!(u64::MAX), json!(i64::MAX)] {
            assert!(matches!(text(&rounded), Err(KeyError::NotExact(_))), "{rounded}");
        }
        assert_eq!(text(&json!(i64::MIN)).unwrap(), "-9223372036854776000");
    }
}
