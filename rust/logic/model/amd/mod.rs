// SPDX-License-Identifier: GPL-2.0

//! AMD's families, a file each: data only.

pub(super) mod family_15h;
pub(super) mod k8;
pub(super) mod table;
pub(super) mod zen;
