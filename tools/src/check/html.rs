// SPDX-License-Identifier: GPL-2.0

//! The report as one HTML page, which loads nothing from elsewhere.

use super::compare::{
    Part,
    Phase, //
};
use super::report::{
    cell,
    number,
    Report,
    EXACTNESS, //
};
use super::tap::Verdict;
use crate::svg::escape;
use std::fmt::{
    Result,
    Write, //
};

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--bad:#c22;--good:#177a3c;--soft:#8881}\
@media(prefers-color-scheme:dark){:root{--bad:#f77;--good:#5c9}}\
body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em}\
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}\
.verdict{padding:.7em 1em;border-left:5px solid;background:var(--soft);font-size:1.1em}\
.good{color:var(--good)}.bad{color:var(--bad)}\
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.3em .8em .3em 0;border-bottom:1px solid var(--line);vertical-align:top}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.none{opacity:.6}\
pre{overflow-x:auto;background:var(--soft);padding:.6em;font-size:13px;white-space:pre-wrap}\
details{margin:.3em 0}summary{cursor:pointer}";

/// Returns the page, with the report as JSON inside it, so that one file is enough.
pub fn page(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> Result {
    let colour = if report.is_good() { "good" } else { "bad" };
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>rpmu-check: {}</title>\n<style>{STYLE}</style>\n<h1>rpmu-check {}</h1>\n\
         <p class=\"verdict {colour}\">{}</p>",
        escape(&report.machine.cpu),
        escape(&report.version),
        escape(&report.verdict())
    )?;
    writeln!(out, "<div class=\"scroll\"><table>")?;
    for (name, value) in report.facts() {
        writeln!(out, "<tr><td>{name}<td>{}", escape(&value))?;
    }
    writeln!(out, "</table></div>")?;
    findings(report, out)?;
    checks(report, out)?;
    figures(report, out)?;
    writeln!(
        out,
        "<h2>What exact means</h2>\n<p>{}</p>",
        escape(EXACTNESS)
    )?;
    if !report.log.is_empty() {
        let log = escape(&report.log.join("\n"));
        writeln!(out, "<h2>The kernel's log</h2>\n<pre>{log}</pre>")?;
    }
    // JSON has this form of `<`, which cannot end the script.
    let json = serde_json::to_string(report)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    writeln!(
        out,
        "<script type=\"application/json\" id=\"report\">{json}</script>\n</html>"
    )
}

fn findings(report: &Report, out: &mut String) -> Result {
    if report.findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>How the drivers differ, and what failed</h2>")?;
    for finding in &report.findings {
        let colour = if finding.kind.is_problem() { "bad" } else { "" };
        writeln!(
            out,
            "<p><b class=\"{colour}\">{}: {}</b> {}</p>",
            escape(&finding.check),
            escape(&finding.test),
            escape(finding.kind.meaning())
        )?;
        if !finding.said.is_empty() {
            writeln!(out, "<pre>{}</pre>", escape(&finding.said.join("\n")))?;
        }
    }
    Ok(())
}

fn checks(report: &Report, out: &mut String) -> Result {
    writeln!(
        out,
        "<h2>Checks</h2>\n<div class=\"scroll\"><table>\n<tr><th>check<th>"
    )?;
    for phase in Phase::ALL {
        write!(out, "<th>{}", phase.name())?;
    }
    for entry in &report.checks {
        write!(
            out,
            "\n<tr><td>{}<td>{}",
            escape(&entry.name),
            escape(&entry.title)
        )?;
        for part in &entry.parts {
            write!(
                out,
                "<td class=\"{}\">{}",
                colour(part.as_ref()),
                cell(part.as_ref())
            )?;
        }
    }
    writeln!(out, "\n</table></div>")?;
    for entry in &report.checks {
        if entry.parts.iter().all(Option::is_none) {
            continue;
        }
        writeln!(
            out,
            "<details><summary>{}: its tests</summary><pre>",
            escape(&entry.name)
        )?;
        for (phase, part) in Phase::ALL.into_iter().zip(&entry.parts) {
            for test in part.iter().flat_map(|it| &it.tests) {
                let verdict = match test.verdict {
                    Verdict::Passed => "ok",
                    Verdict::Failed => "FAILED",
                    Verdict::Skipped => "does not apply",
                };
                let runs = match test.runs {
                    1 => String::new(),
                    runs => format!(" (in {runs} runs)"),
                };
                writeln!(
                    out,
                    "{}: {}: {verdict}{runs}",
                    phase.name(),
                    escape(&test.name)
                )?;
                for line in &test.said {
                    writeln!(out, "    {}", escape(line))?;
                }
            }
        }
        writeln!(out, "</pre></details>")?;
    }
    Ok(())
}

fn colour(part: Option<&Part>) -> &'static str {
    match part {
        None => "none",
        Some(part) if part.count(Verdict::Failed) > 0 || !part.incomplete.is_empty() => "bad",
        Some(part) if part.count(Verdict::Passed) > 0 => "good",
        Some(_) => "none",
    }
}

fn figures(report: &Report, out: &mut String) -> Result {
    if report.figures.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<h2>Measured</h2>\n<div class=\"scroll\"><table>\n<tr><th>"
    )?;
    for phase in Phase::ALL {
        write!(out, "<th class=\"n\">{}", phase.name())?;
    }
    write!(out, "<th>")?;
    for row in &report.figures {
        write!(out, "\n<tr><td>{}", escape(&row.name.replace('_', " ")))?;
        for value in row.values {
            write!(
                out,
                "<td class=\"n\">{}",
                value.map_or("-".to_owned(), number)
            )?;
        }
        write!(out, "<td>{}", escape(&row.unit))?;
    }
    writeln!(out, "\n</table></div>")
}

#[cfg(test)]
mod tests {
    use super::super::checks;
    use super::super::facts::Machine;
    use super::super::private::Private;
    use super::*;

    /// Names from outside must not become part of the page.
    #[test]
    fn is_escaped() {
        let exact = checks::find("exact").unwrap();
        let machine = Machine {
            cpu: "<b>&</script>".to_owned(),
            ..Machine::default()
        };
        let mut report = Report::new(machine, &[exact]);
        report.log.push("</script><i>".to_owned());
        report.finish(&Private::default());
        let page = page(&report);
        assert!(!page.contains("<b>&") && !page.contains("<i>"), "{page}");
        assert_eq!(page.matches("</script>").count(), 1, "{page}");
        assert!(!page.contains("http"), "{page}");
    }
}
