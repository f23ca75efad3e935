// SPDX-License-Identifier: GPL-2.0

//! Tests of the predictions and of the command. One program, to link only once.

mod accept;
mod check;
mod cli;
mod errno;
mod events;
mod forms;
mod live;
mod shares;
mod sharing;
mod speed;
mod split;
mod top;
