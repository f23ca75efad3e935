// SPDX-License-Identifier: GPL-2.0

//! Processors with two types of cores. Each type has its own [`Model`]; leaf 0AH of CPUID is the
//! same on all cores and enumerates what both types have.
//!
//! By declaration, the first two cores are big and all others are small.

use super::spec::Model;

/// A hybrid processor.
#[derive(Debug)]
pub struct Hybrid {
    pub(crate) family: u32,
    /// CPUID models.
    pub(crate) models: &'static [u32],
    /// The models and steppings of dies that have big cores only, and are not hybrid.
    pub(crate) big_only: &'static [(u32, u32)],
    pub(crate) big: CoreType,
    pub(crate) small: CoreType,
}

/// One type of core of a hybrid processor.
#[derive(Debug)]
pub struct CoreType {
    pub(crate) model: &'static Model,
    /// CPUID.1AH:EAX, the type in bits 31:24 and the microarchitecture's number among those of the
    /// type in bits 23:0.
    pub(crate) native_id: u32,
    /// The model of the other type.
    pub(crate) other: &'static Model,
}

/// The number of big cores.
const BIG: u32 = 2;

impl Hybrid {
    /// Returns whether the processor is one of these.
    pub(super) fn is(&self, family: u32, model: u32) -> bool {
        family == self.family && self.models.contains(&model)
    }

    /// Returns the model of a core, and its type unless all cores are big.
    pub(super) fn core(
        &'static self,
        model: u32,
        stepping: u32,
        core: u32,
    ) -> (&'static Model, Option<&'static CoreType>) {
        if self.big_only.contains(&(model, stepping)) {
            return (self.big.model, None);
        }
        let core_type = if core < BIG { &self.big } else { &self.small };
        (core_type.model, Some(core_type))
    }
}

impl CoreType {
    /// Returns the numbers of general, fixed and architectural events that both types have.
    pub(crate) fn common(&self) -> Common {
        let (own, other) = (self.model, self.other);
        Common {
            generals: own.general_counters(1).min(other.general_counters(1)),
            fixed: own.fixed.min(other.fixed),
            architectural: own.architectural.min(other.architectural),
        }
    }
}

/// The counters that leaf 0AH of CPUID enumerates on a hybrid processor.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) generals: usize,
    pub(crate) fixed: usize,
    pub(crate) architectural: u32,
}
