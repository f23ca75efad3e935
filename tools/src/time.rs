// SPDX-License-Identifier: GPL-2.0

//! Times on the command line.

/// Parses a time such as `4ms`, `2s` or `500us` into seconds.
///
/// # Errors
///
/// If it is no time, or not greater than 0; the message says what is expected.
pub fn seconds(text: &str) -> Result<f64, String> {
    let end = text
        .find(|it: char| it.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        _ => return Err("expected a number followed by us, ms, s or min".to_owned()),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number * factor),
        _ => Err("expected a time greater than 0".to_owned()),
    }
}
