// SPDX-License-Identifier: GPL-2.0

//! Writes the tables as Rust source.

use std::fmt::Write as _;

use crate::lists::Events;

pub(crate) fn write_table(out: &mut String, name: &str, list: &Events) {
    let Events {
        events,
        offcore,
        frontend,
        load_latency,
    } = list;
    writeln!(
        out,
        "/// From Intel's list.\n\
         pub static {name}: List = List {{\n    \
             offcore: {offcore:#x},\n    \
             frontend: {frontend:#x},\n    \
             load_latency: {load_latency:#x},\n    \
             events: &["
    )
    .unwrap();
    for ((event, umask, cmask, inv, edge), listed) in events {
        let register = listed
            .register
            .map_or("None".to_string(), |name| format!("Some(Register::{name})"));
        writeln!(
            out,
            "        Listed {{ event: {event:#04x}, umask: {umask:#04x}, cmask: {cmask}, inv: {inv}, edge: {edge}, \
             counters: {:#010b}, precise: {:#010b}, meaning: Meaning::{}, \
             register: {register} }}, // {}",
            listed.counters, listed.precise, listed.meaning, listed.name
        )
        .unwrap();
    }
    writeln!(out, "    ],\n}};").unwrap();
}
