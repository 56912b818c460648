//! What other schedulers write and our parser does not read, in words that it reads: `7L`, `0/15`, `22-5`.

/// The lowest and the highest value of a field, in the order of the fields: seconds, minutes, hours, days of
/// the month, months, weekdays, years. Sunday is 0; a 7 is read as one.
const BOUNDS: [(u32, u32); 7] = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6), (1970, 4999)];

const DAYS: usize = 3;
const WEEKDAYS: usize = 5;
const YEARS: usize = 6;

/// One item of a field in the parser's words, or why it means nothing. What the parser reads anyway is left
/// as it is.
pub fn translate(index: usize, names: &[&str], item: &str) -> Result<String, String> {
    let upper = item.to_ascii_uppercase();
    if index == WEEKDAYS {
        if upper == "L" {
            return Err("\"L\" needs a weekday before it: 5L or FRIL is the last Friday of the month".into());
        }
        if upper == "7L" {
            return Ok("0L".into());
        }
    }
    let (low, high) = BOUNDS[index];
    let number = |text: &str| -> Option<u32> {
        let named = names.iter().position(|name| *name == text);
        let value = match named {
            Some(at) => u32::try_from(at).ok()? + low,
            None => text.parse().ok()?,
        };
        let value = if index == WEEKDAYS && value == 7 { 0 } else { value };
        (low..=high).contains(&value).then_some(value)
    };
    let (range, step) = match upper.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (upper.as_str(), None),
    };
    if let (Some(first), Some(step)) = (number(range), step) {
        // From there to the end of the field.
        return Ok(format!("{first}-{high}/{step}"));
    }
    let ends = range.split_once('-').and_then(|(first, last)| Some((number(first)?, number(last)?)));
    let Some((first, last)) = ends.filter(|(first, last)| first > last) else { return Ok(item.to_owned()) };
    // `5-7` ends with a Sunday and is read as it stands; `6-7` too.
    if index == WEEKDAYS && range.ends_with("-7") {
        return Ok(item.to_owned());
    }
    let step = match step.map(str::parse::<u32>) {
        None => 1,
        Some(Ok(step)) if step > 0 => step,
        // The parser says what is wrong with it.
        Some(_) => return Ok(item.to_owned()),
    };
    if index == YEARS {
        return Err(format!("years do not begin again after {high}; write {last}-{first}"));
    }
    if index == DAYS && step > 1 {
        return Err(format!(
            "months are of different length, so a step cannot go on over their end; write \
             {first}-31/{step},1-{last}/{step}"
        ));
    }
    let span = high - low + 1;
    let values =
        (0..=(last + span - first)).step_by(step as usize).map(|passed| (first - low + passed) % span + low);
    Ok(values.map(|value| value.to_string()).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_wraps_is_the_list_of_its_values() {
        let hours = |item| translate(2, &[], item).unwrap();

        assert_eq!(hours("22-5"), "22,23,0,1,2,3,4,5");
        assert_eq!(hours("22-5/3"), "22,1,4");
        assert_eq!(hours("5-22"), "5-22");
        assert_eq!(translate(4, &["JAN", "FEB"], "11-FEB").unwrap(), "11,12,1,2");
        assert_eq!(translate(3, &[], "30-2").unwrap(), "30,31,1,2");
    }

    #[test]
    fn what_cannot_wrap_is_refused_with_the_form_to_write() {
        assert!(translate(3, &[], "25-5/2").unwrap_err().contains("write 25-31/2,1-5/2"));
        assert!(translate(6, &[], "2030-2027").unwrap_err().contains("write 2027-2030"));
        assert!(translate(5, &[], "L").unwrap_err().contains("5L"));
    }
}
