// SPDX-License-Identifier: GPL-2.0

//! What is predicted, held against what is known otherwise. One program, so that it is linked once.

mod accept;
mod cli;
mod errno;
mod events;
mod live;
mod speed;
mod split;
