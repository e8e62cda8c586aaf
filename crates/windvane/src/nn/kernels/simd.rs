//! Which instructions the kernels use, chosen at run time.
#![allow(unsafe_code)]

use crate::nn::NnError;
use std::sync::OnceLock;

/// The variable that forces an instruction set.
pub(crate) const VARIABLE: &str = "WINDVANE_SIMD";

/// An instruction set this machine has. A value exists only where the machine was seen to have it, which is what makes
/// calling the kernels compiled for it sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level(Set);

/// The sets kernels are compiled for; results are the same bits on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// 16 lanes, 32 registers.
    Avx512,
    /// 8 lanes and fused multiply-add.
    Avx2,
    /// Whatever every machine of this architecture has. Fused multiply-adds may be calls into a library here.
    Baseline,
}

impl Level {
    /// The instruction set asked for by `WINDVANE_SIMD`, or the best there is.
    pub(crate) fn current() -> Self {
        static CURRENT: OnceLock<Level> = OnceLock::new();
        // A wrong value of the variable is reported by `check`; kernels themselves cannot fail.
        *CURRENT.get_or_init(|| Self::asked().unwrap_or_else(|_| Self::best()))
    }

    /// Refuses a value of `WINDVANE_SIMD` that is unknown or that this machine does not have.
    pub(crate) fn check() -> Result<(), NnError> {
        Self::asked().map(|_| ())
    }

    /// The instruction sets this machine has, best first.
    pub(crate) fn supported() -> Vec<Self> {
        Set::ALL.into_iter().filter(|set| set.is_here()).map(Self).collect()
    }

    /// Its name, as `WINDVANE_SIMD` spells it.
    pub(crate) fn name(self) -> &'static str {
        self.0.name()
    }

    pub(super) fn set(self) -> Set {
        self.0
    }

    fn best() -> Self {
        Self::supported()[0]
    }

    fn asked() -> Result<Self, NnError> {
        match std::env::var(VARIABLE) {
            Ok(name) => Self::named(&name),
            Err(_) => Ok(Self::best()),
        }
    }

    fn named(name: &str) -> Result<Self, NnError> {
        let Some(set) = Set::ALL.into_iter().find(|set| set.name() == name) else {
            return Err(NnError::Setting(format!("{VARIABLE}={name}: expected avx512, avx2 or baseline")));
        };
        if set.is_here() {
            Ok(Self(set))
        } else {
            Err(NnError::Setting(format!("{VARIABLE}={name}: this machine does not have these instructions")))
        }
    }
}

impl Set {
    /// Best first.
    const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Baseline];

    fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Baseline => "baseline",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn is_here(self) -> bool {
        match self {
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && Self::Avx2.is_here()
            }
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Self::Baseline => true,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_here(self) -> bool {
        self == Self::Baseline
    }
}

/// Compiles a function once for each instruction set, and gives it a first argument `level` that picks one.
///
/// The body is plain Rust; the compiler vectorises it for each set. It may only use operations whose results do not
/// depend on the instruction set: no sums in an order left to the compiler, and `mul_add` only where it is meant.
macro_rules! per_level {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)+) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name(level: $crate::nn::kernels::simd::Level, $($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, clippy::inline_always)]
            fn body($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            fn avx2($($arg: $ty),*) $(-> $ret)? {
                body($($arg),*)
            }
            match level.set() {
                // SAFETY: a `Level` exists only on machines that have its instructions.
                #[cfg(target_arch = "x86_64")]
                $crate::nn::kernels::simd::Set::Avx512 => unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::nn::kernels::simd::Set::Avx2 => unsafe { avx2($($arg),*) },
                _ => body($($arg),*),
            }
        }
    )+};
}
pub(super) use per_level;

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn a_baseline_is_always_there_and_unknown_names_are_refused() {
        assert_eq!(*Level::supported().last().unwrap(), Level::named("baseline").unwrap());
        let error = Level::named("sse9").unwrap_err().to_string();
        assert_eq!(error, "WINDVANE_SIMD=sse9: expected avx512, avx2 or baseline");
    }
}
